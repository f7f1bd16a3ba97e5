package dependencywatchdog

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	component "gardener.cloud/gardener/internal/component/dependencywatchdog"
)

const namespace = "shoot--dev--a"

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// shootOf returns nodes named a, b and so on, with Machines, and Leases of some age in seconds.
func shootOf(ages ...int) (nodes []corev1.Node, leases []coordinationv1.Lease, machines []machinev1alpha1.Machine) {
	for i, age := range ages {
		name := string(rune('a' + i))
		nodes = append(nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		machine := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "machine-" + name, Labels: map[string]string{"node": name}}}
		machine.Status.CurrentStatus.Phase = machinev1alpha1.MachineRunning
		machines = append(machines, machine)
		renewed := metav1.NewMicroTime(now.Add(-time.Duration(age) * time.Second))
		leases = append(leases, coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed},
		})
	}
	return nodes, leases, machines
}

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		ages   []int
		change func([]corev1.Node, []machinev1alpha1.Machine)
		want   direction
	}{
		"no nodes":          {want: up},
		"one node, expired": {ages: []int{60}, want: stay},
		"one of two is left, and renewed": {ages: []int{1, 60}, change: func(n []corev1.Node, _ []machinev1alpha1.Machine) {
			n[1].Status.Conditions = []corev1.NodeCondition{{Type: "DiskPressure", Status: "True"}}
		}, want: up},
		"all are renewed":                 {ages: []int{1, 29}, want: up},
		"at three quarters of the period": {ages: []int{30, 30}, want: up},
		"all have expired":                {ages: []int{31, 31}, want: down},
		"as many as the fraction":         {ages: []int{31, 31, 31, 1, 1}, want: down},
		"fewer than the fraction":         {ages: []int{31, 1, 31, 1}, want: up},
		"no machines of nodes":            {ages: []int{60, 60}, change: func(n []corev1.Node, _ []machinev1alpha1.Machine) { n[0].Name, n[1].Name = "x", "y" }, want: up},
		"a failed machine":                {ages: []int{60, 60}, change: func(_ []corev1.Node, m []machinev1alpha1.Machine) { m[0].Status.CurrentStatus.Phase = "Failed" }, want: stay},
		"a machine that ends":             {ages: []int{60, 60}, change: func(_ []corev1.Node, m []machinev1alpha1.Machine) { m[0].Status.CurrentStatus.Phase = "Terminating" }, want: stay},
		"a machine that is updated in place": {ages: []int{60, 60}, change: func(_ []corev1.Node, m []machinev1alpha1.Machine) {
			m[0].Status.CurrentStatus.Phase = "InPlaceUpdating"
		}, want: stay},
		"a node without a machine": {ages: []int{60, 60}, change: func(n []corev1.Node, _ []machinev1alpha1.Machine) {
			n[0].Annotations = map[string]string{"node.machine.sapcloud.io/not-managed-by-mcm": "1"}
		}, want: stay},
		"a node with another problem": {ages: []int{60, 60}, change: func(n []corev1.Node, _ []machinev1alpha1.Machine) {
			n[0].Status.Conditions = []corev1.NodeCondition{{Type: "DiskPressure", Status: "True"}}
		}, want: stay},
		"a condition of the pool": {ages: []int{60, 60}, change: func(n []corev1.Node, m []machinev1alpha1.Machine) {
			n[0].Status.Conditions = []corev1.NodeCondition{{Type: "GPUBroken", Status: "True"}}
			m[0].Spec.NodeConditions = new("DiskPressure,GPUBroken")
		}, want: stay},
	} {
		t.Run(name, func(t *testing.T) {
			nodes, leases, machines := shootOf(tc.ages...)
			if tc.change != nil {
				tc.change(nodes, machines)
			}
			if got := judge(nodes, leases, machines, 40*time.Second, 0.6, now); got != tc.want {
				t.Errorf("judge() is %s, want %s", got, tc.want)
			}
		})
	}
}

// configOf returns the configuration with which a component is deployed.
func configOf(t *testing.T, into config, objects []client.Object, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if c, ok := object.(*corev1.ConfigMap); ok {
			path := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(path, []byte(c.Data["dep-config.yaml"]), 0o600); err != nil {
				t.Fatal(err)
			}
			o := options{configFile: path, metricsAddress: ":1", healthAddress: ":2"}
			if err := o.load(into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("there is no ConfigMap")
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme, machinev1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// TestProber is the life of a shoot whose nodes lose their connection, and get it back.
func TestProber(t *testing.T) {
	c := component.ProberConfig{}
	objects, err := component.ProberObjects(component.Values{Namespace: "garden"})
	configOf(t, &c, objects, err)
	shoot := corev1beta1.Shoot{TypeMeta: metav1.TypeMeta{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot"}}
	shoot.Spec.Provider.Workers = []corev1beta1.Worker{{}}
	shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: "Create", State: "Succeeded"}
	raw, err := yaml.Marshal(shoot)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = yaml.YAMLToJSON(raw); err != nil {
		t.Fatal(err)
	}
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	cluster.Spec.Shoot.Raw = raw
	clock := clocktesting.NewFakePassiveClock(now)
	available := func(pods int32) appsv1.DeploymentStatus {
		return appsv1.DeploymentStatus{AvailableReplicas: pods, Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(clock.Now()),
		}}}
	}
	deployment := func(name string, replicas int32, annotations map[string]string) client.Object {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}, Status: available(replicas),
		}
	}
	nodes, leases, machines := shootOf(60, 60)
	seed := fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(&appsv1.Deployment{}).WithObjects(
		cluster, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shoot-access-dependency-watchdog-probe"}},
		&machines[0], &machines[1],
		deployment("kube-controller-manager", 1, nil), deployment("machine-controller-manager", 2, nil), deployment("kube-scheduler", 1, nil),
	).Build()
	target := kubernetesfake.NewClientset(&nodes[0], &nodes[1], &leases[0], &leases[1])
	r := &proberReconciler{proberValues: proberValues{
		Config: c, SeedAPI: seed, SeedReader: seed, Clock: clock,
		Connect: func([]byte, time.Duration) (kubernetes.Interface, error) { return target, nil },
	}}
	pass := func() time.Duration {
		t.Helper()
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}})
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	check := func(step string, want map[string]int32) {
		t.Helper()
		got, list := map[string]int32{}, &appsv1.DeploymentList{}
		if err := seed.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, d := range list.Items {
			got[strings.TrimSuffix(d.Name, "-controller-manager")] = *d.Spec.Replicas
			if protected(&d) != (*d.Spec.Replicas == 0) {
				t.Errorf("%s: %s has %d pods and annotations %v", step, d.Name, *d.Spec.Replicas, d.Annotations)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: pods (-want +got):\n%s", step, diff)
		}
	}

	if wait := pass(); wait != 30*time.Second {
		t.Errorf("the first probe is after %s", wait)
	}
	check("before the first probe", map[string]int32{"kube": 1, "machine": 2, "kube-scheduler": 1})
	clock.SetTime(now.Add(31 * time.Second))
	if wait := pass(); wait < 30*time.Second || wait > 36*time.Second {
		t.Errorf("the next probe is after %s", wait)
	}
	check("Leases have expired", map[string]int32{"kube": 0, "machine": 0, "kube-scheduler": 1})

	for i := range leases {
		leases[i].Spec.RenewTime = new(metav1.NewMicroTime(clock.Now()))
		if _, err := target.CoordinationV1().Leases("kube-node-lease").Update(t.Context(), &leases[i], metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	check("renewed", map[string]int32{"kube": 1, "machine": 0, "kube-scheduler": 1})
	kcm := &appsv1.Deployment{}
	if err := seed.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "kube-controller-manager"}, kcm); err != nil {
		t.Fatal(err)
	}
	kcm.Status = available(1)
	if err := seed.Status().Update(t.Context(), kcm); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(10 * time.Second))
	if wait := pass(); wait != 20*time.Second {
		t.Errorf("the machine-controller-manager comes after %s", wait)
	}
	check("the first is available", map[string]int32{"kube": 1, "machine": 0, "kube-scheduler": 1})
	clock.SetTime(clock.Now().Add(20 * time.Second))
	pass()
	check("all are back", map[string]int32{"kube": 1, "machine": 2, "kube-scheduler": 1})
}

// Deployments of others, and those that are excluded, stay as they are.
func TestScale(t *testing.T) {
	of := func(name string, replicas int32, annotations map[string]string) dependent {
		return dependent{component.DependentResource{ScaleUp: &component.Scaling{}, ScaleDown: &component.Scaling{}}, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Spec: appsv1.DeploymentSpec{Replicas: &replicas},
		}}
	}
	ours := map[string]string{"dependency-watchdog.gardener.cloud/meltdown-protection-active": ""}
	all := []dependent{
		of("runs", 1, nil), of("stopped-by-others", 0, nil), of("ours", 0, ours),
		of("ignored", 1, map[string]string{"dependency-watchdog.gardener.cloud/ignore-scaling": "true"}),
		of("ignored-in-another-spelling", 1, map[string]string{"dependency-watchdog.gardener.cloud/ignore-scaling": "True"}),
		of("not-ignored", 1, map[string]string{"dependency-watchdog.gardener.cloud/ignore-scaling": "false"}),
		of("not-a-value", 1, map[string]string{"dependency-watchdog.gardener.cloud/ignore-scaling": "yes"}),
	}
	for to, want := range map[direction][]string{up: {"ours"}, down: {"runs", "not-ignored", "not-a-value"}, stay: nil} {
		act, _ := scale(all, to, now)
		var got []string
		for _, d := range act {
			got = append(got, d.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s scales %q, want %q", to, got, want)
		}
	}
}

// TestWeeder restarts pods while their Service has not been ready for long.
func TestWeeder(t *testing.T) {
	c := component.WeederConfig{}
	objects, err := component.WeederObjects(component.Values{Namespace: "garden"})
	configOf(t, &c, objects, err)
	crashing := func(name, role string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"gardener.cloud/role": "controlplane", "role": role}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		return pod
	}
	running := crashing("running", "controller-manager")
	running.Status.ContainerStatuses = nil
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-apiserver-1", Labels: map[string]string{"kubernetes.io/service-name": "kube-apiserver"}},
		Endpoints:  []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}},
	}
	seed := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(
		slice, running, crashing("kcm", "controller-manager"), crashing("api", "apiserver"), crashing("etcd", "main"),
	).Build()
	clock := clocktesting.NewFakePassiveClock(now)
	w := &weederReconciler{
		weederValues: weederValues{Config: c, SeedCache: seed, Clock: clock}, readySince: map[types.NamespacedName]time.Time{}, selectors: map[string][]labels.Selector{},
	}
	for service, d := range c.ServicesAndDependantSelectors {
		for _, s := range d.PodSelectors {
			selector, err := metav1.LabelSelectorAsSelector(s)
			if err != nil {
				t.Fatal(err)
			}
			w.selectors[service] = append(w.selectors[service], selector)
		}
	}
	check := func(step string, want ...string) {
		t.Helper()
		if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "kube-apiserver"}}); err != nil {
			t.Fatal(err)
		}
		list, got := &corev1.PodList{}, []string{}
		if err := seed.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, pod := range list.Items {
			got = append(got, pod.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: pods are %q, want %q", step, got, want)
		}
	}
	isReady := func(is bool) {
		t.Helper()
		slice.Endpoints[0].Conditions.Ready = &is
		if err := seed.Update(t.Context(), slice); err != nil {
			t.Fatal(err)
		}
	}
	check("not ready", "api", "etcd", "kcm", "running")
	isReady(true)
	check("ready", "api", "etcd", "running")
	if err := seed.Create(t.Context(), crashing("later", "scheduler")); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(now.Add(6 * time.Minute))
	check("ready for long", "api", "etcd", "later", "running")
	isReady(false)
	check("not ready again", "api", "etcd", "later", "running")
	isReady(true)
	check("ready again", "api", "etcd", "running")
	if requests := w.servicesOf(t.Context(), crashing("api", "apiserver")); len(requests) != 1 || requests[0].Name != "etcd-main-client" {
		t.Errorf("kube-apiserver depends on %v", requests)
	}
}

func TestConfiguration(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"an unknown key":   {"kubeConfigSecret: a", "unknown field"},
		"nothing":          {"{}", "kubeConfigSecretName: required"},
		"not a Deployment": {"kubeConfigSecretName: a\nkcmNodeMonitorGraceDuration: 40s\ndependentResourceInfos: [{ref: {kind: Pod, name: a}}]", "dependentResourceInfos[0].ref: must be a Deployment"},
		"too large":        {"nodeLeaseFailureFraction: 2", "nodeLeaseFailureFraction: 2 must be above 0 and at most 1"},
		"a valid one":      {"kubeConfigSecretName: a\nkcmNodeMonitorGraceDuration: 40s\ndependentResourceInfos: [{ref: {kind: Deployment, name: a}}]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dep-config.yaml")
			if err := os.WriteFile(path, []byte(tc.file), 0o600); err != nil {
				t.Fatal(err)
			}
			o := options{configFile: path, metricsAddress: ":1", healthAddress: ":2"}
			err := o.load(&component.ProberConfig{})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}
