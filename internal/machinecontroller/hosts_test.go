package machinecontroller

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/provider/hosts"
	"gardener.cloud/gardener/test/env"
)

// testHosts plays provider-hosts, which gives a claim a host and takes it away.
func testHosts(t *testing.T, s *scenario) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	content, err := os.ReadFile("../../charts/provider-hosts/definitions/crd-hostclaims.yaml")
	if err := errors.Join(err, yaml.Unmarshal(content, definition), crds.Deploy(t.Context(), s, "test", definition)); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := hosts.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s.create(t, hosts.DriverRole(s.namespace)...)
	s.create(t, &machinev1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "hosts"}, Provider: hostsv1alpha1.MachineProvider,
		ProviderSpec: runtime.RawExtension{Raw: []byte(`{"machineType":"small","zone":"a"}`)}, SecretRef: &corev1.SecretReference{Namespace: s.namespace, Name: "old"},
	}, &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "m"}, Spec: machinev1alpha1.MachineSpec{
		Class: machinev1alpha1.ClassSpec{Kind: machinev1alpha1.MachineClassKind, Name: "hosts"},
	}})
	o := NewProviderOptions()
	s.configure(t, &o.Common)
	t.Cleanup(launch(t, hostsProvider().component(), o))

	claim := env.Await(t, c, env.Named[*hostsv1alpha1.HostClaim](s.namespace, "m"), env.Exists)
	if claim.Spec.MachineType != "small" || claim.Spec.Zone != "a" || len(claim.Finalizers) != 1 {
		t.Errorf("the claim is %+v", claim)
	}
	userData := env.Await(t, c, env.Named[*corev1.Secret](s.namespace, claim.Spec.UserDataSecretName), env.Exists)
	if len(userData.Data["userData"]) == 0 {
		t.Error("there is no user data")
	}
	// It gets a host before the creation would be tried again.
	env.EditStatus(t, c, claim, func(claim *hostsv1alpha1.HostClaim) { claim.Status.HostName, claim.Status.Bound = "server-1", true })
	env.Await(t, s.WithWatch, env.Named[*machinev1alpha1.Machine](s.namespace, "m"), func(m *machinev1alpha1.Machine) error {
		if m.Spec.ProviderID != "hosts:///server-1" || !strings.Contains(m.Status.LastOperation.Description, "Node server-1 does not exist") {
			return fmt.Errorf("provider ID is %q, %s", m.Spec.ProviderID, m.Status.LastOperation.Description)
		}
		return nil
	})
	env.EditStatus(t, c, claim, func(claim *hostsv1alpha1.HostClaim) { claim.Status.Lost = true })
	machine := env.Await(t, s.WithWatch, env.Named[*machinev1alpha1.Machine](s.namespace, "m"), func(m *machinev1alpha1.Machine) error {
		if m.Status.CurrentStatus.Phase != machinev1alpha1.MachineCrashLoopBackOff {
			return errors.New("the machine is not lost")
		}
		return nil
	})
	if err := s.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	// The machine is deleted when its host is released.
	env.Await(t, c, claim, func(claim *hostsv1alpha1.HostClaim) error {
		if claim.DeletionTimestamp == nil {
			return errors.New("the claim is not deleted")
		}
		return nil
	})
	env.Edit(t, c, claim, func(claim *hostsv1alpha1.HostClaim) { claim.Finalizers = nil })
	env.AwaitGone(t, s.WithWatch, machine)
	env.AwaitGone(t, c, userData)
}
