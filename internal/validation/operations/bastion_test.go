package operations_test

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/validation/operations"
	"gardener.cloud/gardener/internal/validation/validationtest"
)

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"

func bastion() *operationsv1alpha1.Bastion {
	b := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Name: "cli-x", Namespace: "garden-dev", ResourceVersion: "1"}}
	b.Annotations = map[string]string{"gardener.cloud/created-by": "alice"}
	b.Spec.ShootRef.Name = "crazy-botany"
	b.Spec.SSHPublicKey = publicKey
	b.Spec.Ingress = []operationsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "203.0.113.7/32"}}}
	return b
}

func TestValidateBastion(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*operationsv1alpha1.Bastion)
		want   []string
	}{
		"a usual bastion is valid": {change: func(*operationsv1alpha1.Bastion) {}},
		"no shoot": {
			change: func(b *operationsv1alpha1.Bastion) { b.Spec.ShootRef.Name = "" },
			want:   []string{"FieldValueRequired spec.shootRef.name"},
		},
		"no key": {
			change: func(b *operationsv1alpha1.Bastion) { b.Spec.SSHPublicKey = "ssh-ed25519" },
			want:   []string{"FieldValueInvalid spec.sshPublicKey"},
		},
		"no allowed addresses": {
			change: func(b *operationsv1alpha1.Bastion) { b.Spec.Ingress = nil },
			want:   []string{"FieldValueInvalid spec.ingress"},
		},
		"more networks than extensions can compute with": {
			change: func(b *operationsv1alpha1.Bastion) { b.Spec.Ingress[0].IPBlock.Except = make([]string, 64) },
			want:   []string{"FieldValueTooMany spec.ingress"},
		},
		"an address without a prefix": {
			change: func(b *operationsv1alpha1.Bastion) { b.Spec.Ingress[0].IPBlock.CIDR = "203.0.113.7" },
			want:   []string{"FieldValueInvalid spec.ingress[0].ipBlock.cidr"},
		},
		"an IPv4 network in IPv6 form": {
			change: func(b *operationsv1alpha1.Bastion) { b.Spec.Ingress[0].IPBlock.CIDR = "::ffff:203.0.113.0/120" },
			want:   []string{"FieldValueInvalid spec.ingress[0].ipBlock.cidr"},
		},
		"a network with exceptions": {change: func(b *operationsv1alpha1.Bastion) {
			b.Spec.Ingress[0].IPBlock = networkingv1.IPBlock{CIDR: "203.0.113.0/24", Except: []string{"203.0.113.7/32", "203.0.113.128/25"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := bastion()
			tc.change(b)
			validationtest.Expect(t, operations.ValidateBastion(b), tc.want...)
		})
	}
}

func TestValidateBastionUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(b, old *operationsv1alpha1.Bastion)
		want   []string
	}{
		"who may connect changes": {change: func(b, _ *operationsv1alpha1.Bastion) { b.Spec.Ingress[0].IPBlock.CIDR = "198.51.100.0/24" }},
		"who may connect changes to what is not valid": {
			change: func(b, _ *operationsv1alpha1.Bastion) { b.Spec.Ingress[0].IPBlock.CIDR = "10.0.0.0" },
			want:   []string{"FieldValueInvalid spec.ingress[0].ipBlock.cidr"},
		},
		"exceptions of a former version stay": {change: func(b, old *operationsv1alpha1.Bastion) {
			b.Spec.Ingress[0].IPBlock.Except, old.Spec.Ingress[0].IPBlock.Except = []string{"10.0.0.0/8"}, []string{"10.0.0.0/8"}
		}},
		"a seed is found": {change: func(b, _ *operationsv1alpha1.Bastion) { b.Spec.SeedName = new("local") }},
		"another seed": {
			change: func(b, old *operationsv1alpha1.Bastion) {
				old.Spec.SeedName, b.Spec.SeedName = new("local"), new("other")
			},
			want: []string{"FieldValueInvalid spec.seedName"},
		},
		"another shoot": {
			change: func(b, _ *operationsv1alpha1.Bastion) { b.Spec.ShootRef.Name = "other" },
			want:   []string{"FieldValueInvalid spec.shootRef.name"},
		},
		"another creator": {
			change: func(b, _ *operationsv1alpha1.Bastion) { b.Annotations["gardener.cloud/created-by"] = "mallory" },
			want:   []string{"FieldValueInvalid metadata.annotations"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, old := bastion(), bastion()
			tc.change(b, old)
			validationtest.Expect(t, operations.ValidateBastionUpdate(b, old), tc.want...)
		})
	}
}
