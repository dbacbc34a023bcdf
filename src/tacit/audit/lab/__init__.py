"""The attack lab: what anonymised tables and exact answers give away, and what Tacit gives away.

Each attack returns an immutable result: print it, show it in a notebook, or `.plot()` it. All attacks are on
people, scans, genomes, sites and friendships that do not exist (`synthetic_people`, `village`, ...); a public
recipe generates them.

Examples
--------
>>> from tacit.audit import lab
>>> attack = lab.reconstruction_attack(people=200, epsilons=[1], trials=200)
>>> attack.recovered[1] > 0.9
True
"""

from tacit.audit.lab._averaging import AveragingAttack, averaging_attack
from tacit.audit.lab._beacon import BeaconAttack, beacon
from tacit.audit.lab._differencing import DifferencingAttack, differencing_attack
from tacit.audit.lab._friendship import FriendshipAttack, friendship
from tacit.audit.lab._genome_membership import GenomeMembership, genome_membership
from tacit.audit.lab._heat_map import HeatMapAttack, heat_map
from tacit.audit.lab._homogeneity import HomogeneityAttack, homogeneity_attack
from tacit.audit.lab._k_anonymity import Anonymised, k_anonymise
from tacit.audit.lab._linking import LinkingAttack, linking_attack
from tacit.audit.lab._membership import MembershipAttack, membership_attack
from tacit.audit.lab._people import DIAGNOSES, People, hashed_uniform, synthetic_people, village
from tacit.audit.lab._power import FALSE_ALARMS, Power
from tacit.audit.lab._reconstruction import ReconstructionAttack, reconstruction_attack
from tacit.audit.lab._singling_out import SinglingOut, singling_out
from tacit.audit.lab._success import CONFIDENCE, Success
from tacit.audit.lab._update_inversion import UpdateInversion, update_inversion
from tacit.audit.lab._update_membership import UpdateMembership, update_membership
from tacit.audit.lab._updates import InsiderScores

__all__ = [
    "CONFIDENCE",
    "DIAGNOSES",
    "FALSE_ALARMS",
    "Anonymised",
    "AveragingAttack",
    "BeaconAttack",
    "DifferencingAttack",
    "FriendshipAttack",
    "GenomeMembership",
    "HeatMapAttack",
    "HomogeneityAttack",
    "InsiderScores",
    "LinkingAttack",
    "MembershipAttack",
    "People",
    "Power",
    "ReconstructionAttack",
    "SinglingOut",
    "Success",
    "UpdateInversion",
    "UpdateMembership",
    "averaging_attack",
    "beacon",
    "differencing_attack",
    "friendship",
    "genome_membership",
    "hashed_uniform",
    "heat_map",
    "homogeneity_attack",
    "k_anonymise",
    "linking_attack",
    "membership_attack",
    "reconstruction_attack",
    "singling_out",
    "synthetic_people",
    "update_inversion",
    "update_membership",
    "village",
]
