package gardenlet

import (
	"errors"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	gardenletcomponent "gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/nodes"
	"gardener.cloud/gardener/test/env"
)

// TestMachineControllerManager deploys it with the permissions of a gardenlet, in place of one that an extension of an earlier version has deployed.
func TestMachineControllerManager(t *testing.T) {
	const namespace = "shoot--dev--crazy"
	e := env.Start(t, env.Lenient())
	if err := addKinds(e.Scheme); err != nil {
		t.Fatal(err)
	}
	admin, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	machine, err := crds.Machine()
	if err != nil {
		t.Fatal(err)
	}
	resources, err := crds.Resources()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), admin, "test", append(machine, resources...)...); err != nil {
		t.Fatal(err)
	}
	rendered, err := gardenletcomponent.Objects(gardenletcomponent.Values{Namespace: "garden"})
	if err != nil {
		t.Fatal(err)
	}
	create := func(object client.Object) {
		t.Helper()
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
	for _, object := range rendered {
		if role, ok := object.(*rbacv1.ClusterRole); ok {
			create(role)
			create(&rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "of-the-test"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "gardenlet"}},
			})
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"shoot.gardener.cloud/provider": "local"}}})
	seed, err := client.NewWithWatch(e.As(t, "gardenlet"), client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	render := func(replicas int32) (machinecontrollermanager.Values, error) {
		return machinecontrollermanager.Values{Namespace: namespace, Image: "registry.example/gardener:v1", Replicas: replicas, GenericKubeconfig: "generic"}, nil
	}

	// What provider-local has deployed before.
	values, _ := render(1)
	former, err := machinecontrollermanager.Objects(values)
	if err != nil {
		t.Fatal(err)
	}
	former = slices.DeleteFunc(former, func(object client.Object) bool { _, is := object.(*rbacv1.RoleBinding); return is })
	for _, object := range former {
		switch object := object.(type) {
		case *rbacv1.Role:
			object.Rules = object.Rules[:1] // the gardenlet grants more
		case *corev1.Service:
			object.Spec.ClusterIP = ""
		case *appsv1.Deployment:
			object.Annotations = map[string]string{"of-provider-local": "true"}
			object.Spec.Template.Spec.Containers[0].Command = []string{"/usr/local/bin/gardener", "machine-controller-manager"}
		}
	}
	if err := kube.Apply(t.Context(), admin, "provider-local", former...); err != nil {
		t.Fatal(err)
	}

	run := &stage.Run{SeedAPI: seed, Namespace: namespace, Name: "crazy", FieldManager: "gardenlet"}
	task := nodes.MachineControllerManager(nodes.Inputs{Run: run, Replicas: 1, MachineControllerManager: render})
	for range 2 { // the second time, it only has its own
		if err := task.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	key := client.ObjectKey{Namespace: namespace, Name: "machine-controller-manager"}
	service, deployment := &corev1.Service{}, &appsv1.Deployment{}
	if err := admin.Get(t.Context(), key, service); err != nil || service.Spec.ClusterIP != corev1.ClusterIPNone || len(service.Spec.Ports) != 2 {
		t.Errorf("Service is %+v (%v)", service.Spec, err)
	}
	if err := admin.Get(t.Context(), key, deployment); err != nil || deployment.Spec.Template.Spec.Containers[0].Command[0] != "./machine-controller-manager" {
		t.Errorf("Deployment is %+v (%v)", deployment.Spec.Template.Spec, err)
	}
	for _, entry := range deployment.ManagedFields {
		if entry.Manager == "provider-local" {
			t.Errorf("provider-local still has fields: %s", entry.FieldsV1)
		}
	}

	// An extension whose webhook does not respond.
	create(&admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "gardener-extension-provider-local"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "controlplane.local.extensions.gardener.cloud", AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/controlplane")},
			SideEffects:  new(admissionregistrationv1.SideEffectClassNone), FailurePolicy: new(admissionregistrationv1.Fail), TimeoutSeconds: new(int32(1)),
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{extensionsv1alpha1.LabelMutatedByControlPlaneWebhook: "true"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
		}},
	})
	// The kube-apiserver knows it a moment later.
	env.Await(t, admin, env.Named[*admissionregistrationv1.MutatingWebhookConfiguration]("", "gardener-extension-provider-local"), func(*admissionregistrationv1.MutatingWebhookConfiguration) error {
		err := task.Run(t.Context())
		if err == nil {
			// An event for the next attempt.
			_ = admin.Patch(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "gardener-extension-provider-local"}},
				client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"attempt":"`+t.Name()+metav1.Now().Format("150405.000000000")+`"}}}`)))
			return errors.New("the webhook is not called yet")
		}
		if want := `MutatingWebhookConfiguration "gardener-extension-provider-local" does not respond as it should`; !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v", err)
		}
		return nil
	})
}
