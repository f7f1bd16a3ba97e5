// Package minors starts the control planes that Gardener renders with the programs of each minor version of Kubernetes.
package minors

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/kubescheduler"
	"gardener.cloud/gardener/internal/component/shootaccess"
	gardenvalues "gardener.cloud/gardener/internal/operator/garden/values"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	shootvalues "gardener.cloud/gardener/internal/shoot/values"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/pkg/secrets"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

// namespace is where a test creates something.
const namespace = "new"

// TestControlPlane starts what the gardenlet and the operator deploy, with the credentials that they generate, and lets it do something: it needs no
// APIs that are not served, and controllers and scheduler work.
func TestControlPlane(t *testing.T) {
	env.EachKubernetes(t, func(t *testing.T, version string, program func(string) string) {
		t.Run("shoot", func(t *testing.T) {
			config := ofShoot(t, version, program, false).start(t)
			schedules(t, config)
			features(t, config, version)
			accepts(t, config)
		})
		t.Run("workerless shoot", func(t *testing.T) { controls(t, ofShoot(t, version, program, true).start(t)) })
		t.Run("virtual garden", func(t *testing.T) { controls(t, ofGarden(t, version, program).start(t)) })
	})
}

// controlPlane is what is rendered for a cluster.
type controlPlane struct {
	of      instance.Kind
	program func(name string) string
	// objects are those of each component, by its name.
	objects map[string][]client.Object
	// seed has the Secrets, in namespace.
	seed        client.Client
	namespace   string
	credentials credentials.Generated
}

// ofShoot renders the control plane of a Shoot, with workers that are packed, or without.
func ofShoot(t *testing.T, version string, program func(string) string, workerless bool) controlPlane {
	t.Helper()
	o := observedtest.State()
	o.Shoot.Spec.Kubernetes.Version = version
	if workerless {
		o.Shoot.Spec.Provider.Workers = nil
	}
	c := controlPlane{program: program, seed: stagetest.New(t).Seed, namespace: o.Namespace}
	set := credentials.New(credentials.Values{SeedAPI: c.seed, Namespace: o.Namespace, Workers: !workerless, Clock: clock.RealClock{}})
	c.credentials = stagetest.Generate(t, set)
	s := shootvalues.Source{State: o, Credentials: set, Images: images(t), GardenerVersion: "v1"}
	apiServer, err := s.KubeAPIServer(1, kubeapiserver.Files{})
	must(t, err)
	controllerManager, err := s.KubeControllerManager(1)
	must(t, err)
	c.objects = map[string][]client.Object{
		kubeapiserver.Name: rendered(t, kubeapiserver.Objects, apiServer), kubecontrollermanager.Name: rendered(t, kubecontrollermanager.Objects, controllerManager),
	}
	if !workerless {
		o.Shoot.Spec.Kubernetes.KubeScheduler = &corev1beta1.KubeSchedulerConfig{Profile: new(corev1beta1.SchedulingProfileBinPacking)}
		scheduler, err := s.KubeScheduler(1)
		must(t, err)
		c.objects[kubescheduler.Name] = rendered(t, kubescheduler.Objects, scheduler)
	}
	return c
}

// ofGarden renders the control plane of a virtual garden.
func ofGarden(t *testing.T, version string, program func(string) string) controlPlane {
	t.Helper()
	garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "local", UID: "1"}}
	v := &garden.Spec.VirtualCluster
	v.DNS.Domains = []operatorv1alpha1.DNSDomain{{Name: "garden.example.com"}}
	v.Kubernetes.Version, v.Networking.Services, v.Gardener.ClusterIdentity = version, []string{"100.64.0.0/13"}, "local"
	c := controlPlane{of: instance.VirtualGarden, program: program, seed: stagetest.New(t).Seed, namespace: constants.GardenNamespace}
	set := credentials.New(gardenvalues.Credentials(garden, c.seed, clock.RealClock{}))
	c.credentials = stagetest.Generate(t, set)
	s := gardenvalues.Source{Garden: garden, Credentials: set, Images: images(t), GardenerVersion: "v1"}
	apiServer, err := s.KubeAPIServer(1, gardenvalues.Files{})
	must(t, err)
	controllerManager, err := s.KubeControllerManager(1)
	must(t, err)
	c.objects = map[string][]client.Object{
		kubeapiserver.Name: rendered(t, kubeapiserver.Objects, apiServer), kubecontrollermanager.Name: rendered(t, kubecontrollermanager.Objects, controllerManager),
	}
	return c
}

func images(t *testing.T) imagevector.Vector {
	t.Helper()
	images, err := imagevector.Default()
	must(t, err)
	return images
}

func rendered[V any](t *testing.T, objects func(V) ([]client.Object, error), v V) []client.Object {
	t.Helper()
	out, err := objects(v)
	must(t, err)
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts all components, and returns the credentials of an administrator once they are healthy. At the end of the test, none of them must have looked
// for an API that is not served.
func (c controlPlane) start(t *testing.T) *rest.Config {
	t.Helper()
	etcdURL, port := env.StartEtcd(t), ports.Free(t, 1)[0]
	server := "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	kubeconfig, err := secrets.IssueKubeconfig(&secrets.Kubeconfig{
		Name: "admin", Server: server, CA: c.credentials.Bundle(constants.SecretNameCACluster), TLSServerName: c.of.Name(kubeapiserver.Name),
		Certificate: &secrets.Certificate{CommonName: "admin", Organization: []string{"system:masters"}, Usage: secrets.ClientCert, Validity: time.Hour},
	}, c.credentials.Current(constants.SecretNameCAClient), time.Now())
	must(t, err)
	log := c.run(t, kubeapiserver.Name, port, kubeconfig, etcdURL)
	env.AwaitStatus(t, log, server+"/readyz", 200)
	for _, name := range []string{kubecontrollermanager.Name, kubescheduler.Name} {
		if c.objects[name] == nil {
			continue
		}
		port := ports.Free(t, 1)[0]
		log := c.run(t, name, port, kubeconfig, etcdURL)
		env.AwaitStatus(t, log, fmt.Sprintf("https://127.0.0.1:%d/healthz", port), 200)
		t.Cleanup(func() {
			said, err := os.ReadFile(log)
			if err != nil {
				t.Error(err)
			}
			for line := range strings.Lines(string(said)) {
				if strings.Contains(line, "could not find the requested resource") {
					t.Errorf("%s: %s", name, line)
				}
			}
		})
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must(t, err)
	return config
}

// run runs the container of a component, with its files below a directory of the test, and returns the file with its log.
func (c controlPlane) run(t *testing.T, name string, port int, kubeconfig []byte, etcdURL string) string {
	t.Helper()
	dir := t.TempDir()
	var pod corev1.PodSpec
	for _, object := range c.objects[name] {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			pod = deployment.Spec.Template.Spec
		}
	}
	container := pod.Containers[0]
	replacements := []string{etcd.URL(c.of, etcd.Main), etcdURL, etcd.URL(c.of, etcd.Events), etcdURL}
	mounts := map[string]string{}
	for _, mount := range container.VolumeMounts {
		mounts[mount.Name] = dir + mount.MountPath
		replacements = append(replacements, mount.MountPath+"/", dir+mount.MountPath+"/")
	}
	replacer := strings.NewReplacer(replacements...)
	for _, volume := range pod.Volumes {
		files := c.files(t, c.objects[name], volume)
		if mounts[volume.Name] == filepath.Join(dir, shootaccess.MountPath) {
			files = map[string][]byte{filepath.Base(shootaccess.PathKubeconfig): kubeconfig}
		}
		must(t, os.MkdirAll(mounts[volume.Name], 0o700))
		for file, data := range files {
			must(t, os.WriteFile(filepath.Join(mounts[volume.Name], file), []byte(replacer.Replace(string(data))), 0o600))
		}
	}
	var args []string
	for _, arg := range append(container.Command[1:], container.Args...) {
		args = append(args, replacer.Replace(arg))
	}
	args = append(args, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port)) // the last one of several counts
	return env.StartProgram(t, c.program(name), args...)
}

// files are what a volume has.
func (c controlPlane) files(t *testing.T, objects []client.Object, volume corev1.Volume) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.ConfigMap:
			if volume.ConfigMap != nil && volume.ConfigMap.Name == o.Name {
				for file, text := range o.Data {
					files[file] = []byte(text)
				}
				return files
			}
		case *corev1.Secret:
			if volume.Secret != nil && volume.Secret.SecretName == o.Name {
				return o.Data
			}
		}
	}
	if volume.Secret != nil {
		secret := &corev1.Secret{}
		must(t, c.seed.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: volume.Secret.SecretName}, secret))
		return secret.Data
	}
	return files
}

func connect(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	api, err := client.NewWithWatch(config, client.Options{})
	must(t, err)
	return api
}

// controls waits until controllers have created what a new namespace has.
func controls(t *testing.T, config *rest.Config) {
	t.Helper()
	api := connect(t, config)
	must(t, api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	env.Await(t, api, env.Named[*corev1.ServiceAccount](namespace, "default"), env.Exists)
	env.Await(t, api, env.Named[*corev1.ConfigMap](namespace, "kube-root-ca.crt"), env.Exists)
}

// schedules waits until the pod of a Deployment is bound to a node by the scheduler that packs nodes.
func schedules(t *testing.T, config *rest.Config) {
	t.Helper()
	controls(t, config)
	api := connect(t, config)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	must(t, api.Create(t.Context(), node))
	env.EditStatus(t, api, node, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
		n.Status.Allocatable = corev1.ResourceList{
			corev1.ResourcePods: resource.MustParse("10"), corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
		}
	})
	labels := map[string]string{"app": "a"}
	must(t, api.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				SchedulerName: kubescheduler.BinPackingSchedulerName,
				Containers:    []corev1.Container{{Name: "a", Image: "registry.example.com/a"}},
			}},
		},
	}))
	env.AwaitList(t, api, func(pods []*corev1.Pod) error {
		if len(pods) == 1 && pods[0].Spec.NodeName == node.Name {
			return nil
		}
		return fmt.Errorf("%d pods, none on the node", len(pods))
	}, client.InNamespace(namespace))
}

// featureMetric is the state of a feature gate in the metrics of a component.
var featureMetric = regexp.MustCompile(`(?m)^kubernetes_feature_enabled\{name="(\w+)",.*\} ([01])$`)

// features compares the feature gates of the kube-apiserver with those that a Shoot may set.
func features(t *testing.T, config *rest.Config, version string) {
	t.Helper()
	api, err := kubernetes.NewForConfig(config)
	must(t, err)
	text, err := api.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	gates := featureMetric.FindAllStringSubmatch(string(text), -1)
	if len(gates) < 50 {
		t.Errorf("the kube-apiserver has %d feature gates", len(gates))
	}
	for _, gate := range gates {
		if !core.FeatureGatePossible(gate[1], gate[2] == "1", version) {
			t.Errorf("feature gate %s=%s is refused for %s, which has it", gate[1], gate[2], version)
		}
	}
}

// accepts applies, as a dry run, what components are rendered to for the cluster or its seed: the golden files have no kinds and no fields of newer
// versions. Some of their values are not valid, and what they refer to does not exist.
func accepts(t *testing.T, config *rest.Config) {
	t.Helper()
	api := connect(t, config)
	files, err := filepath.Glob("../../internal/component/*/testdata/*.yaml")
	must(t, err)
	applied := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		for _, text := range strings.Split(string(data), "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), object); err != nil || !scheme.Scheme.Recognizes(object.GroupVersionKind()) {
				continue // no object, or one of a CustomResourceDefinition
			}
			if object.GetNamespace() != "" {
				object.SetNamespace(namespace)
			}
			err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.DryRunAll, client.ForceOwnership, client.FieldOwner("test"))
			if meta.IsNoMatchError(err) || err != nil && strings.Contains(err.Error(), "field not declared in schema") {
				t.Errorf("%s: %s %s: %v", file, object.GetKind(), object.GetName(), err)
			}
			if err == nil {
				applied++
			}
		}
	}
	if applied < 100 {
		t.Errorf("%d objects of %d files were applied", applied, len(files))
	}
	t.Logf("%d objects of %d files", applied, len(files))
}
