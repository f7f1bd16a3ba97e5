// Package extension tests the controllers for Extensions of operator.gardener.cloud against real API servers and a registry.
package extension

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/chart/charttest"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/extension/care"
	"gardener.cloud/gardener/internal/operator/extension/installation"
	"gardener.cloud/gardener/internal/operator/extension/reference"
	"gardener.cloud/gardener/internal/operator/extension/requiredruntime"
	"gardener.cloud/gardener/internal/operator/extension/requiredvirtual"
	"gardener.cloud/gardener/test/env"
)

const (
	fieldManager = "test"
	user         = "reader"
	password     = "pa55word"
	// hold keeps an object that is deleted, in place of the process that would.
	hold = "example.com/hold"

	garden = `
metadata: {name: garden}
spec:
  runtimeCluster:
    ingress: {domains: [{name: ingress.example.com}], controller: {kind: nginx}}
    networking: {nodes: [172.18.0.0/24], pods: [10.1.0.0/16], services: [10.2.0.0/16]}
    provider: {region: local, zones: [a, b]}
  virtualCluster:
    dns: {domains: [{name: garden.example.com}]}
    etcd: {main: {backup: {provider: Store, secretRef: {name: backup}}}}
    kubernetes: {version: 1.35.0}
    gardener: {clusterIdentity: test}
    maintenance: {timeWindow: {begin: 220000+0100, end: 230000+0100}}
    networking: {services: [100.64.0.0/13]}
`
	// template shows the values that a chart gets, and has pods.
	template = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %s
  namespace: {{ .Release.Namespace }}
  annotations: {values: {{ .Values | toJson | quote }}, kubernetes: "{{ .Capabilities.KubeVersion.Version }}"}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: i}]}
`
)

// gardenResource is a resource for the garden alone, which changes no object.
var gardenResource = corev1beta1.ControllerResource{
	Kind: "Extension", Type: "x", ClusterCompatibility: []corev1beta1.ClusterType{corev1beta1.ClusterTypeGarden},
}

// story is what the steps of the test share.
type story struct {
	*testing.T
	c client.WithWatch
}

func TestExtension(t *testing.T) {
	logf.SetLogger(logr.Discard())
	e := env.Start(t, env.Lenient())
	if err := errors.Join(operatorv1alpha1.AddToScheme(e.Scheme), extensionsv1alpha1.AddToScheme(e.Scheme), resourcesv1alpha1.AddToScheme(e.Scheme),
		apiextensionsv1.AddToScheme(e.Scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t, c}
	s.define(crds.Operator)
	s.start(e)
	step := env.Story(t)

	step("without a Garden, nothing is installed")
	host, ca := serveRegistry(t)
	extension := newExtension(host)
	s.create(
		secret("pull", map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))}),
		secret("ca", map[string]string{"bundle.crt": ca}), secret("paint", map[string]string{"color": "red"}),
		&operatorv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}, extension)
	s.conditions("x", "Installed=False/NoGardenFound", "RequiredRuntime=False/ExtensionNotRequired", "RequiredVirtual=False/NoRequiredControllerInstallation")
	s.conditions("bare", "Installed=False/NoGardenFound", "RequiredRuntime=False/ExtensionNotRequired")
	for _, name := range []string{"pull", "ca", "paint"} {
		s.protected(name)
	}

	step("the Garden requires the extension, which waits for what the Garden brings")
	g := &operatorv1alpha1.Garden{}
	if err := yaml.UnmarshalStrict([]byte(garden), g); err != nil {
		t.Fatal(err)
	}
	s.create(g)
	s.conditions("x", "Installed=Progressing/GardenNotReconciled", "RequiredRuntime=True/ExtensionRequired")
	s.conditions("bare", "Installed=True/ReconcileSuccessful")

	step("the extension is installed in the runtime cluster")
	s.define(crds.Resources)
	s.define(crds.Extensions)
	s.create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gardener-garden-system-200"}, Value: 999999200})
	objects := s.managed("extension-x-garden", "seed")
	s.values(objects["Deployment/runtime-extension-x/controller"],
		`{"color":"red","gardener":{"runtimeCluster":{"enabled":"true","priorityClassName":"gardener-garden-system-200"}}}`)
	namespace := env.Await(t, c, env.Named[*corev1.Namespace]("", "runtime-extension-x"), env.Exists)
	if got := namespace.Annotations["high-availability-config.resources.gardener.cloud/zones"] + " " + namespace.Labels["pod-security.kubernetes.io/enforce"]; got != "a,b baseline" {
		t.Errorf("the namespace has zones and pod security %q", got)
	}
	s.conditions("x", "Installed=Progressing/GardenNotReconciled")
	s.absent("extension-registration-x", "extension-admission-virtual-x", "extension-admission-runtime-x")

	step("when the Garden is reconciled, the extension is registered and its admission controller installed")
	env.Edit(t, c, g, func(g *operatorv1alpha1.Garden) {
		g.Annotations = map[string]string{extensionsv1alpha1.AnnotationGenericKubeconfigSecretName: "generic-token-kubeconfig-1"}
		g.Finalizers = []string{hold}
	})
	env.EditStatus(t, c, g, func(g *operatorv1alpha1.Garden) {
		g.Status.LastOperation = &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, LastUpdateTime: metav1.Now(), Description: "done",
		}
	})
	s.conditions("x", "Installed=True/ReconcileSuccessful")
	objects = s.managed("extension-admission-virtual-x", "")
	s.values(objects["Deployment/extension-x/application"],
		`{"color":"red","gardener":{"virtualCluster":{"enabled":true,"serviceAccount":{"name":"extension-admission-x","namespace":"kube-system"}}}}`)
	if got := objects["Deployment/extension-x/application"].annotation("kubernetes"); got != "v1.35.0" {
		t.Errorf("the chart for the virtual garden sees Kubernetes %s", got)
	}
	if objects["Namespace//extension-x"] == nil {
		t.Error("the admission controller has no namespace in the virtual garden")
	}
	objects = s.managed("extension-admission-runtime-x", "seed")
	s.values(objects["Deployment/garden/admission"], `{"color":"red","gardener":{"runtimeCluster":{"priorityClassName":"gardener-garden-system-400"},`+
		`"virtualCluster":{"enabled":true,"namespace":"extension-x"}}}`)
	for _, text := range []string{"generic-token-kubeconfig-1", "shoot-access-extension-admission-x"} {
		if !strings.Contains(objects["Deployment/garden/admission"].text, text) {
			t.Errorf("the admission controller does not mount %s", text)
		}
	}
	env.Await(t, c, env.Named[*corev1.Secret]("garden", "shoot-access-extension-admission-x"), env.Exists)
	objects = s.managed("extension-registration-x", "")
	for _, name := range []string{"ControllerRegistration//x", "ControllerDeployment//x", "Secret/garden/x-pull", "Secret/garden/x-ca", "Secret/garden/x-paint"} {
		if objects[name] == nil {
			t.Errorf("the registration has no %s", name)
		}
	}
	// The placeholder is filled in by gardenlets, from the copy.
	if text := objects["ControllerDeployment//x"].text; !strings.Contains(text, ".resources.paint.data.color") || !strings.Contains(text, `"name":"x-paint"`) {
		t.Errorf("ControllerDeployment: %s", text)
	}

	step("in a steady state nothing is written")
	before := s.versions()
	env.Edit(t, c, extension, func(e *operatorv1alpha1.Extension) { e.Spec.Resources = append(e.Spec.Resources, gardenResource) })
	env.Await(t, c, extension, func(e *operatorv1alpha1.Extension) error {
		if e.Status.ObservedGeneration != e.Generation {
			return errors.New("the change was not observed")
		}
		return nil
	})
	if diff := cmp.Diff(before, s.versions()); diff != "" {
		t.Errorf("resource versions (-before +after):\n%s", diff)
	}

	step("a change of a Secret reaches the clusters")
	env.Edit(t, c, secret("paint", nil), func(s *corev1.Secret) { s.Data["color"] = []byte("blue") })
	s.await("extension-x-garden", func(o map[string]*object) error {
		return o["Deployment/runtime-extension-x/controller"].contains(`"color\":\"blue\"`)
	})
	s.await("extension-registration-x", func(o map[string]*object) error {
		return o["Secret/garden/x-paint"].contains(base64.StdEncoding.EncodeToString([]byte("blue")))
	})

	step("a ManagedResource that a user deletes is created again")
	uid := s.get("extension-x-garden").UID
	if err := c.Delete(t.Context(), s.get("extension-x-garden")); err != nil {
		t.Fatal(err)
	}
	env.Await(t, c, env.Named[*resourcesv1alpha1.ManagedResource]("garden", "extension-x-garden"), func(mr *resourcesv1alpha1.ManagedResource) error {
		if mr.UID == uid {
			return errors.New("it is the same one")
		}
		return nil
	})

	step("health is reported, and whether a seed requires the extension")
	s.conditions("x", "RuntimeHealthy=False/RuntimeComponentsNotHealthy", "AdmissionHealthy=False/AdmissionComponentsNotHealthy",
		"ControllerInstallationsHealthy=False/ControllerInstallationsNotHealthy")
	for _, name := range []string{"extension-x-garden", "extension-admission-runtime-x", "extension-admission-virtual-x", "extension-registration-x"} {
		s.healthy(name)
	}
	s.conditions("x", "RuntimeHealthy=True/RuntimeComponentsRunning", "AdmissionHealthy=True/AdmissionComponentsRunning",
		"ControllerInstallationsHealthy=True/ControllerInstallationsRunning")
	ci := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "x-1"}, Spec: corev1beta1.ControllerInstallationSpec{
		RegistrationRef: corev1.ObjectReference{Name: "x"}, SeedRef: &corev1.ObjectReference{Name: "s"},
	}}
	s.create(ci)
	s.conditions("x", "ControllerInstallationsHealthy=False/ControllerInstallationsNotHealthy", "RequiredVirtual=False/NoRequiredControllerInstallation")
	env.EditStatus(t, c, ci, func(ci *corev1beta1.ControllerInstallation) {
		ci.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.ControllerInstallationRequired, Status: corev1beta1.ConditionTrue, LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now()}}
	})
	s.conditions("x", "RequiredVirtual=True/RequiredControllerInstallation")
	if err := c.Delete(t.Context(), ci); err != nil {
		t.Fatal(err)
	}
	s.conditions("x", "RequiredVirtual=False/NoRequiredControllerInstallation", "ControllerInstallationsHealthy=True/ControllerInstallationsRunning")

	step("a chart that cannot be pulled is reported")
	env.Edit(t, c, extension, func(e *operatorv1alpha1.Extension) {
		e.Spec.Deployment.Extension.Helm.OCIRepository.Ref = new(host + "/charts/controller:missing")
	})
	s.conditions("x", "Installed=False/ReconcileFailed")
	env.Edit(t, c, extension, func(e *operatorv1alpha1.Extension) {
		e.Spec.Deployment.Extension.Helm.OCIRepository.Ref = new(host + "/charts/controller:1")
	})
	s.conditions("x", "Installed=True/ReconcileSuccessful")

	step("when the Garden is deleted, the extension stays where an object needs it")
	bucket := &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket"}}
	bucket.Spec.Type, bucket.Spec.Class = "store", new(extensionsv1alpha1.ExtensionClassGarden)
	bucket.Spec.Region, bucket.Spec.SecretRef = "local", corev1.SecretReference{Namespace: "garden", Name: "backup"}
	s.create(bucket)
	env.Edit(t, c, s.get("extension-registration-x"), func(mr *resourcesv1alpha1.ManagedResource) { mr.Finalizers = []string{hold} })
	if err := c.Delete(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	// The registration is deleted first.
	s.conditions("x", "Installed=Progressing/Deleting", "RequiredRuntime=True/ExtensionRequired")
	for _, name := range []string{"extension-admission-virtual-x", "extension-admission-runtime-x"} {
		if mr := s.get(name); mr.DeletionTimestamp != nil {
			t.Errorf("%s is deleted before the registration", name)
		}
	}
	env.Edit(t, c, s.get("extension-registration-x"), func(mr *resourcesv1alpha1.ManagedResource) { mr.Finalizers = nil })
	s.conditions("x", "Installed=True/InstalledInRuntime")
	s.absent("extension-registration-x", "extension-admission-virtual-x", "extension-admission-runtime-x")
	if mr := s.get("extension-x-garden"); mr.DeletionTimestamp != nil {
		t.Error("the extension is deleted while a BackupBucket needs it")
	}
	s.conditions("bare", "Installed=False/DeleteSuccessful")

	step("when no object needs it any more, all is deleted")
	if err := c.Delete(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	namespace = env.Await(t, c, namespace, func(n *corev1.Namespace) error {
		if n.DeletionTimestamp == nil {
			return errors.New("it is not deleted")
		}
		return nil
	})
	s.conditions("x", "Installed=Progressing/Deleting", "RequiredRuntime=False/ExtensionNotRequired")
	namespace.Spec.Finalizers = nil // in place of kube-controller-manager
	if err := c.SubResource("finalize").Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	s.conditions("x", "Installed=False/DeleteSuccessful")
	s.absent("extension-x-garden")
	env.AwaitList(t, c, env.None[*corev1.Secret], client.InNamespace("garden"), client.MatchingLabels{operatorv1alpha1.LabelExtensionName: "x"})
	env.Edit(t, c, g, func(g *operatorv1alpha1.Garden) { g.Finalizers = nil })
	env.AwaitGone(t, c, g)
	s.conditions("x", "Installed=False/DeleteSuccessful", "-RuntimeHealthy")

	step("the Extension can be deleted, and then what it refers to")
	if err := errors.Join(c.Delete(t.Context(), secret("paint", nil)), c.Delete(t.Context(), extension)); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, c, extension)
	env.AwaitGone(t, c, secret("paint", nil))
	env.Await(t, c, secret("pull", nil), func(s *corev1.Secret) error {
		if len(s.Finalizers) > 0 {
			return fmt.Errorf("finalizers are %v", s.Finalizers)
		}
		return nil
	})
}

// start runs the controllers. One cluster is the runtime cluster and the virtual garden.
func (s *story) start(e *env.Env) {
	s.Helper()
	mgr, err := manager.New(e.Config, manager.Options{
		Scheme: e.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: crconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		s.Fatal(err)
	}
	virtual, err := cluster.New(e.Config, func(o *cluster.Options) { o.Scheme = e.Scheme })
	if err != nil {
		s.Fatal(err)
	}
	version, err := discovery.NewDiscoveryClientForConfig(e.Config)
	if err != nil {
		s.Fatal(err)
	}
	config := operatorconfigv1alpha1.ExtensionCareControllerConfiguration{ConcurrentSyncs: new(5), SyncPeriod: &metav1.Duration{Duration: time.Minute}}
	if err := errors.Join(
		mgr.Add(virtual),
		requiredruntime.Add(mgr, requiredruntime.Values{ConcurrentSyncs: 5, Clock: clock.RealClock{}}),
		requiredvirtual.Add(mgr, requiredvirtual.Values{Virtual: virtual, ConcurrentSyncs: 5, Clock: clock.RealClock{}}),
		installation.Add(mgr, installation.Values{RuntimeVersion: version, ConcurrentSyncs: 5, Clock: clock.RealClock{}}),
		reference.Add(mgr, reference.Values{ConcurrentSyncs: 5}),
		care.Add(mgr, care.Values{Virtual: virtual, Config: config, Clock: clock.RealClock{}}),
	); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.Errorf("manager: %v", err)
		}
	})
}

func (s *story) define(read func() ([]*apiextensionsv1.CustomResourceDefinition, error)) {
	s.Helper()
	definitions, err := read()
	if err != nil {
		s.Fatal(err)
	}
	if err := crds.Deploy(s.Context(), s.c, fieldManager, definitions...); err != nil {
		s.Fatal(err)
	}
}

func (s *story) create(objects ...client.Object) {
	s.Helper()
	for _, object := range objects {
		if err := s.c.Create(s.Context(), object); err != nil {
			s.Fatalf("create %T %s: %v", object, client.ObjectKeyFromObject(object), err)
		}
	}
}

func secret(name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name}, StringData: data}
}

// conditions waits until an Extension has conditions, given as type=status/reason, or as -type for one that it must not have.
func (s *story) conditions(name string, want ...string) {
	s.Helper()
	env.Await(s, s.c, env.Named[*operatorv1alpha1.Extension]("", name), func(e *operatorv1alpha1.Extension) error {
		var got []string
		types := map[string]bool{}
		for _, c := range e.Status.Conditions {
			got = append(got, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
			types[string(c.Type)] = true
		}
		for _, w := range want {
			if typ, not := strings.CutPrefix(w, "-"); not && types[typ] || !not && !slices.Contains(got, w) {
				return fmt.Errorf("conditions are %v, want %s", got, w)
			}
		}
		return nil
	})
}

func (s *story) protected(name string) {
	s.Helper()
	env.Await(s, s.c, secret(name, nil), func(secret *corev1.Secret) error {
		if !slices.Contains(secret.Finalizers, constants.FinalizerReferenceProtection) {
			return fmt.Errorf("finalizers are %v", secret.Finalizers)
		}
		return nil
	})
}

func (s *story) get(name string) *resourcesv1alpha1.ManagedResource {
	s.Helper()
	return env.Await(s, s.c, env.Named[*resourcesv1alpha1.ManagedResource](constants.GardenNamespace, name), env.Exists)
}

// absent checks that ManagedResources do not exist.
func (s *story) absent(names ...string) {
	s.Helper()
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := s.c.List(s.Context(), list, client.InNamespace(constants.GardenNamespace)); err != nil {
		s.Fatal(err)
	}
	for _, mr := range list.Items {
		if slices.Contains(names, mr.Name) {
			s.Errorf("ManagedResource %s exists", mr.Name)
		}
	}
}

// versions returns the resource versions of what the controllers write.
func (s *story) versions() map[string]string {
	s.Helper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{&resourcesv1alpha1.ManagedResourceList{}, &corev1.SecretList{}, &corev1.NamespaceList{}, &operatorv1alpha1.ExtensionList{}} {
		if err := s.c.List(s.Context(), list); err != nil {
			s.Fatal(err)
		}
		switch list := list.(type) {
		case *resourcesv1alpha1.ManagedResourceList:
			for _, o := range list.Items {
				versions["ManagedResource/"+o.Name] = o.ResourceVersion
			}
		case *corev1.SecretList:
			for _, o := range list.Items {
				versions["Secret/"+o.Namespace+"/"+o.Name] = o.ResourceVersion
			}
		case *corev1.NamespaceList:
			for _, o := range list.Items {
				versions["Namespace/"+o.Name] = o.ResourceVersion
			}
		case *operatorv1alpha1.ExtensionList:
			for _, o := range list.Items {
				versions["Extension/"+o.Name] = fmt.Sprint(kube.Condition(o.Status.Conditions, operatorv1alpha1.ExtensionInstalled)) // others may still settle
			}
		}
	}
	return versions
}

// healthy writes the status of a ManagedResource in place of gardener-resource-manager.
func (s *story) healthy(name string) {
	s.Helper()
	env.EditStatus(s, s.c, s.get(name), func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Status.ObservedGeneration, mr.Status.Conditions = mr.Generation, nil
		for _, condition := range []corev1beta1.Condition{
			{Type: resourcesv1alpha1.ResourcesApplied, Status: corev1beta1.ConditionTrue},
			{Type: resourcesv1alpha1.ResourcesHealthy, Status: corev1beta1.ConditionTrue},
			{Type: resourcesv1alpha1.ResourcesProgressing, Status: corev1beta1.ConditionFalse},
		} {
			condition.LastTransitionTime, condition.LastUpdateTime = metav1.Now(), metav1.Now()
			mr.Status.Conditions = append(mr.Status.Conditions, condition)
		}
	})
}

// object is an object in a ManagedResource, as JSON.
type object struct {
	metav1.PartialObjectMetadata
	text string
}

func (o *object) annotation(key string) string {
	if o == nil {
		return ""
	}
	return o.Annotations[key]
}

func (o *object) contains(text string) error {
	if o == nil {
		return errors.New("the object is missing")
	}
	if !strings.Contains(o.text, text) {
		return fmt.Errorf("%s is not in %s", text, o.text)
	}
	return nil
}

// values checks the values that a chart got.
func (s *story) values(o *object, want string) {
	s.Helper()
	if diff := cmp.Diff(want, o.annotation("values")); diff != "" {
		s.Errorf("values (-want +got):\n%s", diff)
	}
}

// managed waits for a ManagedResource of a class, and returns its objects by kind, namespace and name.
func (s *story) managed(name, class string) map[string]*object {
	s.Helper()
	var found map[string]*object
	s.await(name, func(objects map[string]*object) error {
		found = objects
		return nil
	})
	mr := s.get(name)
	if got := mr.Spec.Class; class == "" && got != nil || class != "" && (got == nil || *got != class) {
		s.Errorf("ManagedResource %s has class %v, want %q", name, got, class)
	}
	if mr.Labels[operatorv1alpha1.LabelExtensionName] != "x" {
		s.Errorf("ManagedResource %s has labels %v", name, mr.Labels)
	}
	return found
}

// await waits until the objects in a ManagedResource pass a check.
func (s *story) await(name string, check func(map[string]*object) error) {
	s.Helper()
	env.Await(s, s.c, env.Named[*resourcesv1alpha1.ManagedResource](constants.GardenNamespace, name), func(mr *resourcesv1alpha1.ManagedResource) error {
		secret := &corev1.Secret{}
		if err := s.c.Get(s.Context(), client.ObjectKey{Namespace: mr.Namespace, Name: mr.Spec.SecretRefs[0].Name}, secret); err != nil {
			return err
		}
		text, err := io.ReadAll(brotli.NewReader(strings.NewReader(string(secret.Data[resourcesv1alpha1.CompressedDataKey]))))
		if err != nil {
			return err
		}
		objects := map[string]*object{}
		for document := range strings.SplitSeq(string(text), "---\n") {
			o := &object{text: document}
			if err := yaml.Unmarshal([]byte(document), &o.PartialObjectMetadata); err != nil {
				return err
			}
			objects[o.Kind+"/"+o.Namespace+"/"+o.Name] = o
		}
		return check(objects)
	})
}

// newExtension returns an Extension with all parts, whose charts are in a registry.
func newExtension(host string) *operatorv1alpha1.Extension {
	helm := func(chart string) operatorv1alpha1.DeploymentSpec {
		return operatorv1alpha1.DeploymentSpec{Helm: &operatorv1alpha1.ExtensionHelm{OCIRepository: &gardencorev1.OCIRepository{
			Ref: new(host + "/charts/" + chart + ":1"), PullSecretRef: &corev1.LocalObjectReference{Name: "pull"}, CABundleSecretRef: &corev1.LocalObjectReference{Name: "ca"},
		}}}
	}
	values := &apiextensionsv1.JSON{Raw: []byte(`{"color":"{{ .resources.paint.data.color }}"}`)}
	return &operatorv1alpha1.Extension{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Annotations: map[string]string{constants.PodSecurityEnforce: "baseline"}},
		Spec: operatorv1alpha1.ExtensionSpec{
			Resources: []corev1beta1.ControllerResource{{Kind: "BackupBucket", Type: "store"}, {Kind: "Worker", Type: "x"}},
			Deployment: &operatorv1alpha1.Deployment{
				Extension: &operatorv1alpha1.ExtensionDeploymentSpec{DeploymentSpec: helm("controller"), Values: values, RuntimeClusterValues: values},
				Admission: &operatorv1alpha1.AdmissionDeploymentSpec{
					RuntimeCluster: new(helm("admission")), VirtualCluster: new(helm("application")), Values: values,
				},
				Resources: []gardencorev1.NamedResourceReference{{
					Name: "paint", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "paint"},
				}},
			},
		},
	}
}

// serveRegistry serves charts to a user, and returns the address of the registry and its CA.
func serveRegistry(t *testing.T) (host, ca string) {
	t.Helper()
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "https://")
	for _, chart := range []string{"controller", "admission", "application"} {
		archive := charttest.Pack(t, "Chart.yaml", "apiVersion: v2\nname: "+chart+"\nversion: 1.0.0\n", "templates/a.yaml", fmt.Sprintf(template, chart))
		image, err := mutate.AppendLayers(empty.Image, static.NewLayer(archive, types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")))
		if err != nil {
			t.Fatal(err)
		}
		ref, err := name.ParseReference(host + "/charts/" + chart + ":1")
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, image, remote.WithTransport(server.Client().Transport), remote.WithAuth(&authn.Basic{Username: user, Password: password})); err != nil {
			t.Fatal(err)
		}
	}
	return host, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}
