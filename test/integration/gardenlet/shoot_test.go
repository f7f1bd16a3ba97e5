package gardenlet

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// testShoot runs the flow of a Shoot as far as it gets without pods: it reads all that the Shoot refers to in the garden, and publishes what
// clients of the shoot need there. Then the Shoot is removed as if its control plane had been deleted.
func (g *garden) testShoot(t *testing.T) {
	const project, namespace = "dev", "garden-dev"
	secret := func(namespace, name string, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Data: map[string][]byte{"hostname": []byte("issuer.example.com")},
		}
	}
	issuer := map[string]string{constants.GardenRole: constants.GardenRoleShootServiceAccountIssuer}
	ref := func(kind, name string) corev1beta1.NamedResourceReference {
		return corev1beta1.NamedResourceReference{Name: name, ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: kind, Name: name}}
	}
	shoot := builder.Shoot("a", builder.In(namespace), builder.Workers(1), builder.On(seedName), builder.Confirmed, func(s *corev1beta1.Shoot) {
		s.Annotations[constants.AuthenticationIssuer] = constants.AuthenticationIssuerManaged
		s.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: constants.CloudProfileReferenceKindNamespacedCloudProfile, Name: "own"}
		s.Spec.ExposureClassName = new("public")
		s.Spec.Resources = []corev1beta1.NamedResourceReference{ref("Secret", "referenced"), ref("ConfigMap", "settings")}
	})
	parent, profile := builder.CloudProfile(builder.Local), &corev1beta1.NamespacedCloudProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"},
		Spec: corev1beta1.NamespacedCloudProfileSpec{
			Parent: corev1beta1.CloudProfileReference{Kind: constants.CloudProfileReferenceKindCloudProfile, Name: builder.Local},
		},
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{
			constants.GardenRole: constants.GardenRoleProject, constants.ProjectName: project,
		}}},
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: project}, Spec: corev1beta1.ProjectSpec{Namespace: new(namespace)}},
		parent, profile,
		&corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "public"}, Handler: "internet"},
		&corev1beta1.ControllerRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: "provider-of-shoots"},
			Spec: corev1beta1.ControllerRegistrationSpec{Resources: []corev1beta1.ControllerResource{
				{Kind: "Infrastructure", Type: builder.Local},
				{Kind: "Network", Type: builder.Local},
				{Kind: "OperatingSystemConfig", Type: builder.Local},
				{Kind: "Worker", Type: builder.Local},
			}},
		},
		secret("garden", "dns", nil), secret("garden", "issuer", issuer), secret("seed-"+seedName, "issuer", issuer),
		secret(namespace, builder.Local, nil), secret(namespace, "referenced", nil),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}},
		&securityv1alpha1.CredentialsBinding{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: builder.Local},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: builder.Local},
			Provider:       securityv1alpha1.CredentialsBindingProvider{Type: builder.Local},
		},
	} {
		if err := g.c.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
	// Its controller does not run here.
	env.EditStatus(t, g.c, profile, func(p *corev1beta1.NamespacedCloudProfile) {
		p.Status.CloudProfileSpec, p.Status.ObservedGeneration = &parent.Spec, p.Generation
	})
	if err := g.c.Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	_, stop := g.start(t)
	for _, published := range []string{"a.ca-cluster", "a.ssh-keypair"} {
		env.Await(t, g.c, env.Named[*corev1.Secret](namespace, published), env.Exists)
	}
	env.Await(t, g.c, env.Named[*corev1.ConfigMap](namespace, "a.ca-cluster"), env.Exists)
	env.Await(t, g.c, env.Named[*corev1beta1.InternalSecret](namespace, "a.ca-client"), env.Exists)
	env.Await(t, g.c, env.Named[*corev1.Secret](constants.GardenerShootIssuerNamespace, project+"--"+string(shoot.UID)), env.Exists)
	env.Await(t, g.c, env.Named[*corev1beta1.Shoot](namespace, "a"), func(s *corev1beta1.Shoot) error {
		if s.Status.LastOperation == nil || s.Status.LastOperation.Progress == 0 {
			return errors.New("no progress is reported")
		}
		return nil
	})
	env.Await(t, g.c, env.Named[*gatewayv1.TLSRoute]("shoot--"+project+"--a", "kube-apiserver"), func(route *gatewayv1.TLSRoute) error {
		if gateway := *route.Spec.ParentRefs[0].Namespace; gateway != handlerNamespace {
			return fmt.Errorf("the route is that of a gateway in namespace %s", gateway)
		}
		return nil
	})
	g.testBastion(t, shoot)
	stop()

	env.EditStatus(t, g.c, shoot, func(s *corev1beta1.Shoot) {
		s.Status.LastOperation = &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeDelete, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, LastUpdateTime: metav1.Now(),
		}
	})
	if err := g.c.Delete(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": []string{}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.c.Patch(t.Context(), shoot, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, g.c, shoot)
}
