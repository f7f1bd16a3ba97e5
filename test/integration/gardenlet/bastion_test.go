package gardenlet

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

// testBastion creates a Bastion for a Shoot, reconciles it as the extension of a provider does, changes and deletes it.
func (g *garden) testBastion(t *testing.T, shoot *corev1beta1.Shoot) {
	bastion := &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: "cli"},
		Spec: operationsv1alpha1.BastionSpec{
			ShootRef:     corev1.LocalObjectReference{Name: shoot.Name},
			SSHPublicKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJuMh7s0ehb9vbrCEbzHAZCLmnF9J1LD3aTfh4n0YrFy me",
			Ingress:      []operationsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "203.0.113.7/32"}}},
		},
	}
	if err := g.c.Create(t.Context(), bastion); err != nil {
		t.Fatal(err)
	}
	inSeed := awaitRequest[*extensionsv1alpha1.Bastion](t, g)
	current := env.Await(t, g.c, env.Named[*corev1beta1.Shoot](shoot.Namespace, shoot.Name), env.Exists)
	want := extensionsv1alpha1.BastionSpec{
		DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: shoot.Spec.Provider.Type}, UserData: inSeed.Spec.UserData,
		Ingress: []extensionsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "203.0.113.7/32"}}},
	}
	if diff := cmp.Diff(want, inSeed.Spec); diff != "" || len(inSeed.Spec.UserData) == 0 || inSeed.Namespace != current.Status.TechnicalID {
		t.Errorf("Bastion in namespace %q of the seed, spec (-want +got):\n%s", inSeed.Namespace, diff)
	}
	reports := func(want string) {
		t.Helper()
		env.Await(t, g.c, bastion, func(b *operationsv1alpha1.Bastion) error {
			got := ""
			for _, c := range b.Status.Conditions {
				got += fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason)
			}
			if b.Status.Ingress != nil {
				got += " at " + b.Status.Ingress.IP
			}
			if observed := b.Status.ObservedGeneration; got != want || observed == nil || *observed != b.Generation {
				return fmt.Errorf("it reports %q of generation %v, want %q of %d", got, observed, want, b.Generation)
			}
			return nil
		})
	}
	reports("BastionReady Progressing Reconciling")
	address := "198.51.100.1"
	playExtension(t, g, &extensionsv1alpha1.BastionList{}, func(b *extensionsv1alpha1.Bastion) {
		b.Status.ObservedGeneration, b.Status.LastOperation = b.Generation, succeeded()
		b.Status.Ingress = &corev1.LoadBalancerIngress{IP: address}
		if len(b.Spec.Ingress) > 1 {
			b.Status.Ingress.IP = "198.51.100.2"
		}
	})
	reports("BastionReady True SuccessfullyReconciled at 198.51.100.1")
	env.Edit(t, g.c, bastion, func(b *operationsv1alpha1.Bastion) {
		b.Spec.Ingress = append(b.Spec.Ingress, operationsv1alpha1.BastionIngressPolicy{IPBlock: networkingv1.IPBlock{CIDR: "203.0.113.8/32"}})
	})
	reports("BastionReady True SuccessfullyReconciled at 198.51.100.2")
	if err := g.c.Delete(t.Context(), bastion); err != nil {
		t.Fatal(err)
	}
	reports("BastionReady False DeletionInProgress at 198.51.100.2")
	if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(inSeed), inSeed); err != nil {
		t.Errorf("the Bastion in the seed was not waited for: %v", err)
	}
	finishDeletion[*extensionsv1alpha1.Bastion, *operationsv1alpha1.Bastion](t, g)
}
