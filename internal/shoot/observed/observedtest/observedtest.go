// Package observedtest has a shoot for tests.
package observedtest

import (
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/stage/dns"
	"gardener.cloud/gardener/internal/stage/extension"
)

// State returns the state of a shoot with workers, known networks, backups, both domains, and Extensions of each lifecycle.
func State() *observed.State {
	shoot := &corev1beta1.Shoot{}
	shoot.Name, shoot.Namespace, shoot.UID = "crazy-botany", "garden-dev", "1"
	shoot.Spec.Provider = corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{{Name: "a"}}}
	shoot.Status.Networking = &corev1beta1.NetworkingStatus{Nodes: []string{"10.6.0.0/16"}, Pods: []string{"10.5.0.0/16"}, Services: []string{"10.4.0.0/16"}}
	return &observed.State{
		Shoot: shoot, Seed: &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Backup: &corev1beta1.Backup{}}},
		Project: "dev", Namespace: "shoot--dev--crazy-botany", HasNamespace: true,
		Internal: &dns.Domain{Name: "crazy-botany.dev.internal.example.com", Provider: "local"},
		External: &dns.Domain{Name: "crazy-botany.dev.example.com", Provider: "local"},
		Extensions: []extension.Extension{
			{Type: "early", Reconcile: corev1beta1.BeforeKubeAPIServer, Delete: corev1beta1.AfterKubeAPIServer, Reconciled: true},
			{Type: "late", Reconcile: corev1beta1.AfterWorker, Delete: corev1beta1.BeforeKubeAPIServer},
			{Type: "usual", Reconcile: corev1beta1.AfterKubeAPIServer, Delete: corev1beta1.BeforeKubeAPIServer},
		},
	}
}
