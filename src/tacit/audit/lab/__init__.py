"""The attack lab: see with your own eyes what anonymisation and exact answers give away, and what Tacit does.

Each attack returns a frozen result: print it, show it in a notebook, `.plot()` it. All of them attack
people who do not exist (`synthetic_people`, `village`), made by a public recipe.

Examples
--------
>>> from tacit.audit import lab
>>> attack = lab.reconstruction_attack(people=200, epsilons=[1], trials=200)
>>> attack.recovered[1] > 0.9
True
"""

from tacit.audit.lab.averaging import AveragingAttack, averaging_attack
from tacit.audit.lab.differencing import DifferencingAttack, differencing_attack
from tacit.audit.lab.game import Success
from tacit.audit.lab.homogeneity import HomogeneityAttack, homogeneity_attack
from tacit.audit.lab.linking import LinkingAttack, linking_attack
from tacit.audit.lab.membership import MembershipAttack, membership_attack
from tacit.audit.lab.mondrian import Anonymised, k_anonymise
from tacit.audit.lab.people import DIAGNOSES, People, hashed_uniform, synthetic_people, village
from tacit.audit.lab.reconstruction import ReconstructionAttack, reconstruction_attack

__all__ = [
    "DIAGNOSES",
    "Anonymised",
    "AveragingAttack",
    "DifferencingAttack",
    "HomogeneityAttack",
    "LinkingAttack",
    "MembershipAttack",
    "People",
    "ReconstructionAttack",
    "Success",
    "averaging_attack",
    "differencing_attack",
    "hashed_uniform",
    "homogeneity_attack",
    "k_anonymise",
    "linking_attack",
    "membership_attack",
    "reconstruction_attack",
    "synthetic_people",
    "village",
]
