package controllermanager

import (
	"fmt"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

func testManagedSeedLabel(t *testing.T, g *garden) {
	managed := shoot("garden", "managed")
	object := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "managed"},
		Spec: seedmanagementv1alpha1.ManagedSeedSpec{
			Shoot:     &seedmanagementv1alpha1.Shoot{Name: managed.Name},
			Gardenlet: seedmanagementv1alpha1.GardenletConfig{Config: &runtime.RawExtension{Raw: []byte(fmt.Sprintf(gardenletConfig, "managed"))}},
		},
	}
	labelled := func(want ...string) {
		t.Helper()
		env.Await(t, g.client, object, func(m *seedmanagementv1alpha1.ManagedSeed) error {
			labels := map[string]string{}
			for _, seed := range want {
				labels["name.seed.gardener.cloud/"+seed] = "true"
			}
			if !maps.Equal(labels, m.Labels) {
				return fmt.Errorf("the labels are %v", m.Labels)
			}
			return nil
		})
	}
	g.create(t, managed, object)
	labelled()
	editStatus(t, g, managed, func(s *corev1beta1.Shoot) { s.Status.SeedName = new("one") })
	labelled("one")
	env.Bind(t, g.client, managed, "two")
	labelled("one", "two")
	g.delete(t, object, managed)
}

// gardenletConfig is the configuration of a gardenlet with a valid Seed, in whose domain is a name.
const gardenletConfig = `{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration",
"seedConfig":{"metadata":{"labels":{"set":"s"}},"spec":{"provider":{"type":"local","region":"local"},"networks":{"pods":"10.3.0.0/16","services":"10.4.0.0/16"},
"ingress":{"domain":"ingress.%s.example.com","controller":{"kind":"nginx"}},
"dns":{"provider":{"type":"local","credentialsRef":{"apiVersion":"v1","kind":"Secret","namespace":"garden","name":"dns"}},
"internal":{"type":"local","domain":"internal.example.com","credentialsRef":{"apiVersion":"v1","kind":"Secret","namespace":"garden","name":"dns"}}}}}}`

func testManagedSeedSet(t *testing.T, g *garden) {
	step := env.Story(t)
	labels := map[string]string{"set": "s"}
	template := builder.Shoot("any", builder.Workers(1), builder.Window, func(s *corev1beta1.Shoot) {
		s.Spec.DNS = &corev1beta1.DNS{Domain: new("replica-name.example.com")}
	})
	set := &seedmanagementv1alpha1.ManagedSeedSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "set"},
		Spec: seedmanagementv1alpha1.ManagedSeedSetSpec{
			Selector:      metav1.LabelSelector{MatchLabels: labels},
			ShootTemplate: corev1beta1.ShootTemplate{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template.Spec},
			Template: seedmanagementv1alpha1.ManagedSeedTemplate{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: seedmanagementv1alpha1.ManagedSeedSpec{Gardenlet: seedmanagementv1alpha1.GardenletConfig{
					Config: &runtime.RawExtension{Raw: []byte(fmt.Sprintf(gardenletConfig, "replica-name"))},
				}},
			},
		},
	}
	status := func(replicas, ready int32, pending string) {
		t.Helper()
		env.Await(t, g.client, set, func(s *seedmanagementv1alpha1.ManagedSeedSet) error {
			got := ""
			if p := s.Status.PendingReplica; p != nil {
				got = p.Name + " " + string(p.Reason)
			}
			if s.Status.Replicas != replicas || s.Status.ReadyReplicas != ready || got != pending {
				return fmt.Errorf("the status is %+v with %q, want %d replicas, %d ready, %q", s.Status, got, replicas, ready, pending)
			}
			return nil
		})
	}
	operation := func(name string, state corev1beta1.LastOperationState) {
		t.Helper()
		editStatus(t, g, env.Named[*corev1beta1.Shoot]("garden", name), func(s *corev1beta1.Shoot) {
			s.Status.ObservedGeneration = s.Generation
			s.Status.LastOperation = &corev1beta1.LastOperation{Type: "Create", State: state, LastUpdateTime: metav1.Now()}
			s.Status.Conditions = []corev1beta1.Condition{condition("APIServerAvailable", "")}
		})
	}

	step("it creates a Shoot")
	g.create(t, set)
	status(1, 0, "set-0 ShootReconciling")
	if shoot := env.Await(t, g.client, env.Named[*corev1beta1.Shoot]("garden", "set-0"), env.Exists); *shoot.Spec.DNS.Domain != "set-0.example.com" {
		t.Errorf("its domain is %s", *shoot.Spec.DNS.Domain)
	}

	step("and retries it")
	operation("set-0", corev1beta1.LastOperationStateFailed)
	awaitEvent(t, g, "set", "RetryingShootReconciliation")

	step("then its ManagedSeed")
	env.Await(t, g.client, env.Named[*corev1beta1.Shoot]("garden", "set-0"), func(s *corev1beta1.Shoot) error {
		if s.Annotations["gardener.cloud/operation"] == "" && s.Generation == s.Status.ObservedGeneration {
			return fmt.Errorf("generation %d is not retried", s.Generation)
		}
		return nil
	})
	edit(t, g, env.Named[*corev1beta1.Shoot]("garden", "set-0"), func(s *corev1beta1.Shoot) { delete(s.Annotations, "gardener.cloud/operation") })
	operation("set-0", corev1beta1.LastOperationStateSucceeded)
	status(1, 0, "set-0 ManagedSeedPreparing")
	managedSeed := env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", "set-0")

	step("which is ready with its Seed")
	editStatus(t, g, managedSeed, func(m *seedmanagementv1alpha1.ManagedSeed) {
		m.Status.ObservedGeneration, m.Status.Conditions = m.Generation, []corev1beta1.Condition{condition("SeedRegistered", "")}
	})
	status(1, 0, "set-0 SeedNotReady")
	seed := builder.Seed("set-0")
	g.create(t, seed)
	editStatus(t, g, seed, func(s *corev1beta1.Seed) {
		s.Status.ObservedGeneration = s.Generation
		s.Status.Conditions = append(s.Status.Conditions, condition("GardenletReady", ""), condition("SeedSystemComponentsHealthy", ""))
	})
	status(1, 1, "")

	step("a smaller set deletes the ManagedSeed, and then the Shoot")
	env.Edit(t, g.client, managedSeed, func(m *seedmanagementv1alpha1.ManagedSeed) { m.Finalizers = []string{"gardener"} })
	edit(t, g, set, func(s *seedmanagementv1alpha1.ManagedSeedSet) { s.Spec.Replicas = new(int32(0)) })
	status(1, 0, "set-0 ManagedSeedDeleting")
	env.Await(t, g.client, env.Named[*corev1beta1.Shoot]("garden", "set-0"), func(s *corev1beta1.Shoot) error {
		if s.DeletionTimestamp != nil {
			t.Error("the Shoot is deleted before its ManagedSeed")
		}
		return nil
	})
	env.Edit(t, g.client, managedSeed, func(m *seedmanagementv1alpha1.ManagedSeed) { m.Finalizers = nil })
	env.AwaitGone(t, g.client, env.Named[*corev1beta1.Shoot]("garden", "set-0"))
	status(0, 0, "")

	step("numbers are not used again, and the set stays until its replicas are gone")
	edit(t, g, set, func(s *seedmanagementv1alpha1.ManagedSeedSet) { s.Spec.Replicas = new(int32(1)) })
	status(1, 0, "set-1 ShootReconciling")
	g.delete(t, set)
	operation("set-1", corev1beta1.LastOperationStateSucceeded) // it does not delete what is being created
	env.AwaitGone(t, g.client, set)
	env.AwaitGone(t, g.client, env.Named[*corev1beta1.Shoot]("garden", "set-1"))
	g.delete(t, seed)
}
