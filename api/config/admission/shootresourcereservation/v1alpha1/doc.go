// +k8s:deepcopy-gen=package
// +groupName=shootresourcereservation.admission.gardener.cloud

// Package v1alpha1 is the configuration of the admission plugin ShootResourceReservation.
package v1alpha1
