"""Labels of samples, as estimators, metrics, pictures and the command read them.

- :class:`ClassLabels`: one label for each sample;
- :class:`Indicators`: several labels for each sample, as a matrix of 0 and 1;
- :class:`LabelLists`: several labels for each sample, as lists;
- :class:`RealTargets`: numbers.

`labeled` marks samples with a label (or target); ``matrix(dtype)`` is Y, (n, k).
"""

from __future__ import annotations

from ._classes import ClassLabels as ClassLabels
from ._classes import Targets as Targets
from ._classes import label_vector as label_vector
from ._classes import unmask_labels as unmask_labels
from ._doubts import doubts as doubts
from ._doubts import label_key as label_key
from ._doubts import means_missing as means_missing
from ._doubts import parse_list as parse_list
from ._doubts import warn_of_doubts as warn_of_doubts
from ._several import Indicators as Indicators
from ._several import LabelLists as LabelLists
from ._several import RealTargets as RealTargets
from ._several import allowed as allowed
from ._several import indicator_matrix as indicator_matrix
from ._several import is_indicator as is_indicator
from ._several import labels_of as labels_of
from ._several import names_array as names_array
from ._several import sorting as sorting
