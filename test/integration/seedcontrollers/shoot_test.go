package seedcontrollers

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

// shoot waits until a check of a shoot succeeds.
func (g *garden) shoot(t *testing.T, name string, check func(*corev1beta1.Shoot) error) {
	t.Helper()
	env.Await(t, g.client, env.Named[*corev1beta1.Shoot]("garden-dev", name), check)
}

func (g *garden) testHibernation(t *testing.T) {
	// It is to be hibernated at every full minute. After two minutes, at least one has passed since its creation.
	shoot := newShoot("hibernated", "east")
	shoot.Spec.Hibernation = &corev1beta1.Hibernation{Schedules: []corev1beta1.HibernationSchedule{{Start: new("* * * * *")}}}
	g.create(t, shoot)
	g.clock.Step(2 * time.Minute)
	change(t, g, shoot, func(s *corev1beta1.Shoot) { s.Spec.Purpose = new(corev1beta1.ShootPurposeTesting) })
	g.shoot(t, "hibernated", func(s *corev1beta1.Shoot) error {
		if enabled := s.Spec.Hibernation.Enabled; enabled == nil || !*enabled || s.Status.LastHibernationTriggerTime == nil {
			return fmt.Errorf("hibernation is %v, last at %v", s.Spec.Hibernation, s.Status.LastHibernationTriggerTime)
		}
		return nil
	})
	// If a user wakes it up in between, it runs until the next trigger.
	change(t, g, shoot, func(s *corev1beta1.Shoot) { s.Spec.Hibernation.Enabled = new(false) })
	g.clock.Step(61 * time.Second)
	change(t, g, shoot, func(s *corev1beta1.Shoot) { s.Spec.Purpose = new(corev1beta1.ShootPurposeDevelopment) })
	g.shoot(t, "hibernated", func(s *corev1beta1.Shoot) error {
		if !*s.Spec.Hibernation.Enabled {
			return fmt.Errorf("hibernation is not enabled")
		}
		return nil
	})
	change(t, g, shoot, func(s *corev1beta1.Shoot) { s.Spec.Hibernation = nil })
}

func (g *garden) testRetry(t *testing.T) {
	shoot := newShoot("limited", "east")
	g.create(t, shoot)
	changeStatus(t, g, shoot, func(s *corev1beta1.Shoot) {
		s.Status.ObservedGeneration = s.Generation
		s.Status.LastOperation = &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateFailed,
			LastUpdateTime: metav1.NewTime(g.clock.Now().Add(-16 * time.Minute)),
		}
		s.Status.LastErrors = []corev1beta1.LastError{{Description: "rate limit exceeded", Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraRateLimitsExceeded}}}
	})
	// The gardener-apiserver increases the generation because of the annotation, so that the gardenlet starts again.
	g.shoot(t, "limited", func(s *corev1beta1.Shoot) error {
		if s.Annotations[constants.GardenerOperation] != constants.ShootOperationRetry && s.Generation == s.Status.ObservedGeneration {
			return fmt.Errorf("generation is %d, annotations are %v", s.Generation, s.Annotations)
		}
		return nil
	})
}

func (g *garden) testLifetime(t *testing.T) {
	shoot := newShoot("limited-lifetime", "east")
	shoot.Spec.CredentialsBindingName = new("limited-lifetime")
	quota := &corev1beta1.Quota{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "limited-lifetime"}, Spec: corev1beta1.QuotaSpec{
		Scope: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret"}, Metrics: corev1.ResourceList{}, ClusterLifetimeDays: new(int32(2)),
	}}
	binding := &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "garden-dev", Name: "limited-lifetime"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden-dev", Name: "secret"},
		Quotas:         []corev1.ObjectReference{{Namespace: "garden-dev", Name: "limited-lifetime"}},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
	}
	g.create(t, quota, binding, shoot)
	g.shoot(t, "limited-lifetime", func(s *corev1beta1.Shoot) error {
		if want := shoot.CreationTimestamp.UTC().AddDate(0, 0, 2).Format(time.RFC3339); s.Annotations[constants.ShootExpirationTimestamp] != want {
			return fmt.Errorf("annotations are %v, want expiration at %s", s.Annotations, want)
		}
		return nil
	})
	change(t, g, shoot, func(s *corev1beta1.Shoot) {
		s.Annotations[constants.ShootExpirationTimestamp] = g.clock.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	})
	env.AwaitGone(t, g.client, shoot)
	g.delete(t, binding)
	g.delete(t, quota)
	env.AwaitGone(t, g.client, quota)
}

func (g *garden) testGuards(t *testing.T) {
	quota := &corev1beta1.Quota{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "quota"}, Spec: corev1beta1.QuotaSpec{
		Scope: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret"}, Metrics: corev1.ResourceList{},
	}}
	binding := &corev1beta1.SecretBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "binding"},
		SecretRef:  corev1.SecretReference{Namespace: "garden-dev", Name: "secret"},
		Quotas:     []corev1.ObjectReference{{Namespace: "garden-dev", Name: "quota"}},
		Provider:   &corev1beta1.SecretBindingProvider{Type: "local"},
	}
	class := &corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Handler: "handler"}
	shoot := newShoot("exposed", "east")
	shoot.Spec.ExposureClassName = new("class")
	g.create(t, quota, binding, class, shoot)
	guarded(t, g, quota, constants.FinalizerGardenerName)
	guarded(t, g, class, constants.FinalizerGardenerName)
	// The finalizers stay because of users in the cache.
	g.awaitCached(t, shoot, binding)
	g.delete(t, quota)
	g.delete(t, class)
	g.delete(t, binding)
	env.AwaitGone(t, g.client, quota)
	change(t, g, shoot, func(s *corev1beta1.Shoot) { s.Annotations = map[string]string{constants.ConfirmationDeletion: "true"} })
	env.AwaitList(t, g.client, func(classes []*corev1beta1.ExposureClass) error {
		if len(classes) != 1 || classes[0].DeletionTimestamp == nil {
			return fmt.Errorf("the class is not in deletion, waiting for the shoot")
		}
		return nil
	})
	g.delete(t, shoot)
	env.AwaitGone(t, g.client, class)
}

func (g *garden) testBastions(t *testing.T) {
	shoot := newShoot("bastion", "east")
	g.create(t, shoot)
	var bastions []*operationsv1alpha1.Bastion
	for _, name := range []string{"moved", "expired"} {
		bastions = append(bastions, &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: name}, Spec: operationsv1alpha1.BastionSpec{
			ShootRef: corev1.LocalObjectReference{Name: "bastion"}, SeedName: new("east"), ProviderType: new("local"), SSHPublicKey: sshKey,
			Ingress: []operationsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}},
		}})
	}
	g.create(t, bastions[0], bastions[1])
	// The gardener-apiserver lets it expire an hour after its last heartbeat.
	changeStatus(t, g, bastions[1], func(b *operationsv1alpha1.Bastion) {
		b.Status.LastHeartbeatTimestamp = new(metav1.NewTime(g.clock.Now().Add(-time.Hour)))
	})
	env.AwaitGone(t, g.client, bastions[1])
	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(bastions[0]), bastions[0]); err != nil {
		t.Fatalf("the other one: %v", err)
	}
	change(t, g, shoot, func(s *corev1beta1.Shoot) { s.Annotations = map[string]string{constants.ConfirmationDeletion: "true"} })
	g.delete(t, shoot)
	env.AwaitGone(t, g.client, bastions[0])
}

func (g *garden) testEvents(t *testing.T) {
	newEvent := func(name, kind string) *eventsv1.Event {
		return &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: name}, EventTime: metav1.NewMicroTime(time.Now()),
			Regarding:           corev1.ObjectReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: kind, Namespace: "garden-dev", Name: "x"},
			ReportingController: "test", ReportingInstance: "test", Action: "Test", Reason: "Test", Type: "Normal", Note: "test",
		}
	}
	g.clock.SetTime(time.Now().Add(2 * time.Hour))
	about, other := newEvent("shoot", "Shoot"), newEvent("seed", "Seed")
	g.create(t, about, other)
	env.AwaitGone(t, g.client, other)
	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(about), about); err != nil {
		t.Errorf("event about a Shoot: %v", err)
	}
}

const sshKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl test"
