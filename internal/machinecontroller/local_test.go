package machinecontroller

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/process"
	providerlocal "gardener.cloud/gardener/internal/provider/local"
	"gardener.cloud/gardener/test/env"
)

// The machines of provider-local are in the namespace of the Infrastructure, for which the process has a Role.
func testLocal(t *testing.T, s *scenario) {
	role, binding := providerlocal.DriverRole(s.namespace, localv1alpha1.InfrastructureNamespace(s.namespace))
	s.local(t, &process.OtherCluster{}, role, binding)
}

// They may be in the cluster of a kubeconfig, which is another one than that of the Machines.
func testLocalElsewhere(t *testing.T, s *scenario) {
	system := &corev1.Namespace{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		t.Fatal(err)
	}
	s.local(t, &process.OtherCluster{Kubeconfig: s.kubeconfig, UID: string(system.UID), Blocked: func(string) string { return "" }})
}

func (s *scenario) local(t *testing.T, cluster *process.OtherCluster, roles ...client.Object) {
	t.Helper()
	namespace := localv1alpha1.InfrastructureNamespace(s.namespace)
	s.create(t, append([]client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&machinev1alpha1.MachineClass{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "local"}, Provider: localv1alpha1.MachineProvider,
			ProviderSpec: runtime.RawExtension{Raw: []byte(`{"image":"registry.example/machine:v1","namespace":"` + namespace + `"}`)},
			SecretRef:    &corev1.SecretReference{Namespace: s.namespace, Name: "old"},
		},
		&machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "m"}, Spec: machinev1alpha1.MachineSpec{
			Class: machinev1alpha1.ClassSpec{Kind: machinev1alpha1.MachineClassKind, Name: "local"},
		}},
	}, roles...)...)
	o := NewProviderOptions()
	s.configure(t, &o.Common)
	t.Cleanup(launch(t, localProvider(cluster).component(), o))

	env.Await(t, s.WithWatch, env.Named[*machinev1alpha1.Machine](s.namespace, "m"), func(m *machinev1alpha1.Machine) error {
		if m.Spec.ProviderID != "local:///"+namespace+"/m" {
			return fmt.Errorf("provider ID is %q, %s", m.Spec.ProviderID, m.Status.LastOperation.Description)
		}
		return nil
	})
	pod := env.Await(t, s.WithWatch, env.Named[*corev1.Pod](namespace, "m"), env.Exists)
	// Its end is noticed by a watch of the namespace with the pods.
	if err := s.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	machine := env.Await(t, s.WithWatch, env.Named[*machinev1alpha1.Machine](s.namespace, "m"), func(m *machinev1alpha1.Machine) error {
		if m.Status.CurrentStatus.Phase != machinev1alpha1.MachineCrashLoopBackOff {
			return errors.New("the machine is not lost")
		}
		return nil
	})
	if err := s.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, s.WithWatch, machine)
	env.AwaitGone(t, s.WithWatch, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "machine-m"}})
}
