"""The attack lab: what anonymised tables and exact answers give away, and what Tacit gives away.

Each attack returns an immutable result: print it, show it in a notebook, or `.plot()` it. All attacks are on
people, scans, genomes, sites and friendships that do not exist (`synthetic_people`, `village`, ...); a public
recipe generates them.

In reading order: `_worlds` (people, success, power), `_answers` (exact answers), `_k_anonymity`, `_genomes`,
`_friendship` (graphs), `_heat_map` (maps), `_updates` (training).

Examples
--------
>>> from tacit.audit import lab
>>> attack = lab.reconstruction_attack(people=200, epsilons=[1], trials=200)
>>> attack.recovered[1] > 0.9
True
"""

from tacit.audit.lab._answers import (
    AveragingAttack,
    DifferencingAttack,
    MembershipAttack,
    ReconstructionAttack,
    averaging_attack,
    differencing_attack,
    membership_attack,
    reconstruction_attack,
)
from tacit.audit.lab._friendship import FriendshipAttack, friendship
from tacit.audit.lab._genomes import (
    BeaconAttack,
    GenomeMembership,
    SinglingOut,
    beacon,
    genome_membership,
    singling_out,
)
from tacit.audit.lab._heat_map import HeatMapAttack, heat_map
from tacit.audit.lab._k_anonymity import (
    Anonymised,
    HomogeneityAttack,
    LinkingAttack,
    homogeneity_attack,
    k_anonymise,
    linking_attack,
)
from tacit.audit.lab._updates import (
    InsiderScores,
    UpdateInversion,
    UpdateMembership,
    update_inversion,
    update_membership,
)
from tacit.audit.lab._worlds import (
    CONFIDENCE,
    DIAGNOSES,
    FALSE_ALARMS,
    People,
    Power,
    Success,
    hashed_uniform,
    synthetic_people,
    village,
)
from tacit.calls import refuse_wrong_calls

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

refuse_wrong_calls(__name__, __all__)
