package local

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/worker"
)

const namespace = "shoot--dev--crazy"

var credentials = corev1.SecretReference{Namespace: namespace, Name: "cloudprovider"}

// profileWith sets the machine images of the cloud profile.
func profileWith(t *testing.T, cluster *extension.Cluster, versions ...localv1alpha1.MachineImageVersion) {
	t.Helper()
	raw, err := json.Marshal(&localv1alpha1.CloudProfileConfig{MachineImages: []localv1alpha1.MachineImages{{Name: "local", Versions: versions}}})
	if err != nil {
		t.Fatal(err)
	}
	cluster.CloudProfile.Spec.ProviderConfig = &runtime.RawExtension{Raw: raw}
}

func newCluster(t *testing.T) *extension.Cluster {
	t.Helper()
	cluster := &extension.Cluster{Name: namespace, CloudProfile: &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}}, Shoot: &corev1beta1.Shoot{}}
	cluster.CloudProfile.Spec.MachineTypes = []corev1beta1.MachineType{{Name: "small", CPU: resource.MustParse("2"), Memory: resource.MustParse("2Gi")}}
	profileWith(t, cluster, localv1alpha1.MachineImageVersion{Version: "1.0.0", Image: "registry.example/machine:v1"}, localv1alpha1.MachineImageVersion{
		Version: "2.0.0", CapabilityFlavors: []localv1alpha1.MachineImageFlavor{
			{Image: "registry.example/machine:v2-arm", Capabilities: corev1beta1.Capabilities{"architecture": {"arm64"}}},
			{Image: "registry.example/machine:v2", Capabilities: corev1beta1.Capabilities{"architecture": {"amd64"}}},
		},
	})
	return cluster
}

func newWorker() *extensionsv1alpha1.Worker {
	w := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crazy"}}
	w.Spec.Region, w.Spec.SecretRef = "local", credentials
	w.Spec.Pools = []extensionsv1alpha1.WorkerPool{{
		Name: "pool", MachineType: "small", Minimum: 1, Maximum: 1, MachineImage: &extensionsv1alpha1.MachineImage{Name: "local", Version: "2.0.0"},
		UserDataSecretRef:   corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "userdata"}, Key: "cloud_config"},
		NodeAgentSecretName: new("gardener-node-agent-pool-1"),
	}}
	return w
}

// newSeed has the credentials of a shoot, with a kubeconfig if there is one.
func newSeed(t *testing.T, kubeconfig string, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: credentials.Namespace, Name: credentials.Name}}
	if kubeconfig != "" {
		secret.Data = map[string][]byte{"kubeconfig": []byte(kubeconfig), "nodes": []byte("10.7.0.0/16")}
	}
	userData := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "userdata"}, Data: map[string][]byte{"cloud_config": []byte("#!/bin/bash")}}
	return fake.NewClientBuilder().WithScheme(scheme).WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithStatusSubresource(&extensionsv1alpha1.Infrastructure{}).
		WithObjects(append(objects, secret, userData, kubeSystem("seed"))...).Build()
}

func workersIn(seed client.Client, others ...client.Client) *workers {
	return newWorkers(worker.Values{Client: seed, Reader: seed, Clock: testingclock.NewFakePassiveClock(time.Unix(1000, 0))}, placesOf(seed, others...),
		[]localv1alpha1.MachineRegistry{{Host: "registry.example", Mirrors: []string{"http://10.0.0.1:5000"}}})
}

func waits(t *testing.T, err error, reason string) {
	t.Helper()
	var waiting *extension.Wait
	if !errors.As(err, &waiting) || waiting.Reason != reason {
		t.Fatalf("error is %v, want to wait for %q", err, reason)
	}
}

func TestWorkerClass(t *testing.T) {
	a, w, cluster := workersIn(newSeed(t, "")), newWorker(), newCluster(t)
	waits(t, a.Reconcile(t.Context(), w, cluster), `0 of 1 machines of "shoot--dev--crazy-pool" are ready`)
	classes := &machinev1alpha1.MachineClassList{}
	if err := a.Client.List(t.Context(), classes); err != nil || len(classes.Items) != 1 {
		t.Fatalf("%d classes, %v", len(classes.Items), err)
	}
	want := `{"apiVersion":"local.provider.extensions.gardener.cloud/v1alpha1","image":"registry.example/machine:v2","kind":"MachineProviderSpec",` +
		`"namespace":"infra-shoot--dev--crazy","registries":[{"host":"registry.example","mirrors":["http://10.0.0.1:5000"]}]}`
	if got := string(classes.Items[0].ProviderSpec.Raw); got != want || classes.Items[0].Provider != "local" {
		t.Errorf("providerSpec is\n%s, want\n%s", got, want)
	}
	if !strings.Contains(string(w.Status.ProviderStatus.Raw), `"image":"registry.example/machine:v2"`) {
		t.Errorf("providerStatus is %s", w.Status.ProviderStatus.Raw)
	}

	// An image that is removed from the CloudProfile is kept, so that machines are not replaced.
	profileWith(t, cluster)
	waits(t, a.Reconcile(t.Context(), w, cluster), `0 of 1 machines of "shoot--dev--crazy-pool" are ready`)
	again := &machinev1alpha1.MachineClassList{}
	if err := a.Client.List(t.Context(), again); err != nil || len(again.Items) != 1 || again.Items[0].Name != classes.Items[0].Name {
		t.Errorf("classes are %v, %v", again.Items, err)
	}
}

// Machines boot from the image whose capabilities their type has, also when both images were removed from the CloudProfile.
func TestWorkerImageHasCapabilitiesOfItsType(t *testing.T) {
	w, cluster := newWorker(), newCluster(t)
	cluster.CloudProfile.Spec.MachineCapabilities = []corev1beta1.CapabilityDefinition{
		{Name: "architecture", Values: []string{"amd64"}}, {Name: "gpu", Values: []string{"none", "one"}},
	}
	cluster.CloudProfile.Spec.MachineTypes = []corev1beta1.MachineType{
		{Name: "small", Capabilities: corev1beta1.Capabilities{"gpu": {"none"}}}, {Name: "large", Capabilities: corev1beta1.Capabilities{"gpu": {"one"}}},
	}
	profileWith(t, cluster, localv1alpha1.MachineImageVersion{Version: "2.0.0", CapabilityFlavors: []localv1alpha1.MachineImageFlavor{
		{Image: "plain", Capabilities: corev1beta1.Capabilities{"gpu": {"none"}}}, {Image: "driver", Capabilities: corev1beta1.Capabilities{"gpu": {"one"}}},
	}})
	large := w.Spec.Pools[0]
	large.Name, large.MachineType = "large", "large"
	w.Spec.Pools = append(w.Spec.Pools, large)
	check := func() {
		t.Helper()
		for i, want := range []string{"plain", "driver"} {
			got, err := imageOf(w, cluster, &w.Spec.Pools[i], field.NewPath("pool"))
			if err != nil || got.Image != want {
				t.Errorf("image of pool %q is %+v (%v), want %q", w.Spec.Pools[i].Name, got, err, want)
			}
		}
	}
	check()
	status, err := (&delegate{}).ProviderStatus(t.Context(), w, cluster)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	w.Status.ProviderStatus = &runtime.RawExtension{Raw: raw}
	profileWith(t, cluster)
	check()
}

// A pool over two zones has machines on nodes of both, and the label of the zone on its nodes. Where the seed does not have the zone, they are on any node.
func TestWorkerZones(t *testing.T) {
	for name, tc := range map[string]struct{ seed, pool, want []string }{
		"the seed has them":   {seed: []string{"0", "1", "2"}, pool: []string{"0", "1"}, want: []string{"0 on 0", "1 on 1"}},
		"the seed has one":    {seed: []string{"0"}, pool: []string{"0"}, want: []string{"0 on "}},
		"the seed has others": {seed: []string{"a", "b"}, pool: []string{"0", "a"}, want: []string{"0 on ", "a on a"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, w, cluster := workersIn(newSeed(t, "")), newWorker(), newCluster(t)
			cluster.Seed = &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Zones: tc.seed}}}
			w.Spec.Pools[0].Zones = tc.pool
			var waiting *extension.Wait
			if err := a.Reconcile(t.Context(), w, cluster); !errors.As(err, &waiting) {
				t.Fatalf("error is %v, want to wait for machines", err)
			}
			classes := &machinev1alpha1.MachineClassList{}
			if err := a.Client.List(t.Context(), classes); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, class := range classes.Items {
				spec := &localv1alpha1.MachineProviderSpec{}
				if err := json.Unmarshal(class.ProviderSpec.Raw, spec); err != nil {
					t.Fatal(err)
				}
				got = append(got, class.NodeTemplate.Zone+" on "+spec.Zone)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("zones of the classes (-want +got):\n%s", diff)
			}
			deployments := &machinev1alpha1.MachineDeploymentList{}
			if err := a.Client.List(t.Context(), deployments); err != nil {
				t.Fatal(err)
			}
			var labels []string
			for _, deployment := range deployments.Items {
				labels = append(labels, deployment.Spec.Template.Spec.NodeTemplate.ObjectMeta.Labels[corev1.LabelTopologyZone])
			}
			slices.Sort(labels)
			if diff := cmp.Diff(tc.pool, labels); diff != "" {
				t.Errorf("labels of nodes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorkerRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*extensionsv1alpha1.WorkerPool)
		want   string
	}{
		"no image":         {func(p *extensionsv1alpha1.WorkerPool) { p.MachineImage = nil }, "spec.pools[0].machineImage"},
		"an unknown image": {func(p *extensionsv1alpha1.WorkerPool) { p.MachineImage.Version = "3.0.0" }, "spec.pools[0].machineImage"},
		"a configuration": {func(p *extensionsv1alpha1.WorkerPool) {
			p.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
		}, "spec.pools[0].providerConfig"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorker()
			tc.change(&w.Spec.Pools[0])
			err := workersIn(newSeed(t, "")).Reconcile(t.Context(), w, newCluster(t))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !errorcode.NeedsUser(errorcode.Of(err)) {
				t.Errorf("error is %v with codes %v, want %q", err, errorcode.Of(err), tc.want)
			}
		})
	}
}

// The driver may only work where machines are: in their namespace, unless its kubeconfig permits it, and in that of the control plane until the machines
// of a former version are replaced.
func TestDriverRole(t *testing.T) {
	former := &machinev1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "former"}, ProviderSpec: runtime.RawExtension{Raw: []byte(`{"image":"x"}`)}}
	for name, tc := range map[string]struct {
		kubeconfig, state string
		objects           []client.Object
		want              []string
	}{
		"machines in the seed":               {want: []string{"infra-shoot--dev--crazy"}},
		"machines in another cluster":        {kubeconfig: "other"},
		"machines of a former version, also": {objects: []client.Object{former}, want: []string{"infra-shoot--dev--crazy", namespace}},
		"machines in the seed, and a kubeconfig since": {
			kubeconfig: "other", state: `{"place":{"uid":"seed"}}`, want: []string{"infra-shoot--dev--crazy"},
		},
		"recorded machines in another cluster": {kubeconfig: "other", state: `{"place":{"uid":"other","server":"https://other.example"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			seed := newSeed(t, tc.kubeconfig, append(tc.objects, withState(tc.state))...)
			var waiting *extension.Wait
			if err := workersIn(seed).Reconcile(t.Context(), newWorker(), newCluster(t)); !errors.As(err, &waiting) {
				t.Fatal(err)
			}
			roles, bindings := &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}
			if err := errors.Join(seed.List(t.Context(), roles), seed.List(t.Context(), bindings)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, role := range roles.Items {
				got = append(got, role.Namespace)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || len(bindings.Items) != len(got) {
				t.Errorf("roles (-want +got):\n%s", diff)
			}
			for _, binding := range bindings.Items {
				if binding.Subjects[0].Namespace != namespace {
					t.Errorf("the role is bound to an account of namespace %q", binding.Subjects[0].Namespace)
				}
			}
		})
	}
}

// A control plane does not move away from machines that the next seed would not find.
func TestWorkerMigrates(t *testing.T) {
	machine := func(id string) client.Object {
		return &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}, Spec: machinev1alpha1.MachineSpec{ProviderID: id}}
	}
	const there, inSeed = "local:///infra-shoot--dev--crazy/m", `{"place":{"uid":"seed"}}`
	for name, tc := range map[string]struct {
		kubeconfig, state string
		machines          []client.Object
		refused           string
		want              string // the state
	}{
		"no machines": {state: inSeed, want: inSeed},
		"machines that the other seed reaches": {
			kubeconfig: "other", state: `{"place":{"uid":"other"}}`, machines: []client.Object{machine(there)}, want: `{"place":{"server":"https://other.example","uid":"other"}}`,
		},
		"and their place is not recorded yet": {
			kubeconfig: "other", machines: []client.Object{machine(there)}, want: `{"place":{"server":"https://other.example","uid":"other"}}`,
		},
		"machines in this seed, which the other one reaches": {
			kubeconfig: "seed", state: inSeed, machines: []client.Object{machine(there)}, want: `{"place":{"server":"https://seed.example","uid":"seed"}}`,
		},
		"machines that only this seed reaches": {state: inSeed, machines: []client.Object{machine(there)}, refused: `Secret "cloudprovider" has no key "kubeconfig"`},
		"machines in this seed, and a kubeconfig of another cluster": {
			kubeconfig: "other", state: inSeed, machines: []client.Object{machine(there)}, refused: `Secret "cloudprovider": the machines of the shoot are in the cluster of its seed`,
		},
		"and their place is not recorded yet, though": {
			kubeconfig: "other", machines: []client.Object{machine(there), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "infra-shoot--dev--crazy", Name: "m"}}},
			refused: `Secret "cloudprovider": the machines of the shoot are in the cluster of its seed`,
		},
		"machines in another cluster, and no kubeconfig": {
			state: `{"place":{"uid":"other","server":"https://other.example"}}`, machines: []client.Object{machine(there)},
			refused: `Secret "cloudprovider": the machines of the shoot are in the cluster with the API server https://other.example`,
		},
		"machines in the namespace of the control plane": {
			kubeconfig: "other", machines: []client.Object{machine("local:///shoot--dev--crazy/m")}, refused: `machine "m" is in the namespace of the control plane`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			infrastructure := withState(tc.state)
			seed := newSeed(t, tc.kubeconfig, append(tc.machines, infrastructure)...)
			err := workersIn(seed, newOther(t, "other"), seed).Migrate(t.Context(), newWorker(), newCluster(t))
			if tc.refused != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.refused) || !isConfigurationProblem(err) {
					t.Errorf("error is %v, want %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(infrastructure), infrastructure); err != nil || string(infrastructure.Status.State.Raw) != tc.want {
				t.Errorf("state is %s, want %s (%v)", infrastructure.Status.State.Raw, tc.want, err)
			}
		})
	}
}

// A machine-controller-manager whose machines are in another cluster has the credentials, may connect to it, and is replaced when they change.
func TestDriverContainer(t *testing.T) {
	here, there, changed := &corev1.PodTemplateSpec{}, &corev1.PodTemplateSpec{}, &corev1.PodTemplateSpec{}
	setDriver(here, "image", namespace, driverAccess{})
	setDriver(there, "image", namespace, driverAccess{kubeconfig: []byte("a"), cluster: "other"})
	setDriver(there, "image", namespace, driverAccess{kubeconfig: []byte("a"), cluster: "other"})
	setDriver(changed, "image", namespace, driverAccess{kubeconfig: []byte("b"), cluster: "other"})
	if len(here.Spec.Volumes) > 0 || len(here.Annotations) > 0 || len(here.Labels) > 0 || len(here.Spec.Containers) != 1 {
		t.Errorf("without a kubeconfig: %+v", here)
	}
	args := there.Spec.Containers[0].Args
	want := []string{"--infrastructure-kubeconfig=/var/run/secrets/gardener.cloud/infrastructure/kubeconfig", "--infrastructure-cluster=other"}
	if len(there.Spec.Volumes) != 1 || len(there.Spec.Containers) != 1 || !slices.Equal(args[len(args)-2:], want) {
		t.Errorf("with a kubeconfig: %+v", there.Spec)
	}
	if there.Labels["networking.gardener.cloud/to-private-networks"] != "allowed" {
		t.Errorf("labels are %v", there.Labels)
	}
	if key := "checksum/secret-cloudprovider"; there.Annotations[key] == "" || there.Annotations[key] == changed.Annotations[key] {
		t.Errorf("checksums are %v and %v", there.Annotations, changed.Annotations)
	}
}
