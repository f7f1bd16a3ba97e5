package v1alpha1

import corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"

// BastionReady says whether the bastion can be reached. Written by the gardenlet.
const BastionReady corev1beta1.ConditionType = "BastionReady"
