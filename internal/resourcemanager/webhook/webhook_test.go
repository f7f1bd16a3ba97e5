package webhook

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	component "gardener.cloud/gardener/internal/component/resourcemanager"
)

// send sends an object to a handler and returns it as it is admitted.
func send[T client.Object](t *testing.T, handler admission.HandlerFunc, kind string, object T) T {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	response := handler(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Kind: kind}, Namespace: "n", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	}})
	if !response.Allowed {
		t.Fatalf("refused: %v", response.Result)
	}
	changes, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(changes)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = patch.Apply(raw); err != nil {
		t.Fatal(err)
	}
	admitted := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) // the patch removes fields, too
	if err := json.Unmarshal(raw, admitted); err != nil {
		t.Fatal(err)
	}
	return admitted
}

func namespace(annotations ...string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{}}}
	for i := 0; i < len(annotations); i += 2 {
		n.Annotations["high-availability-config.resources.gardener.cloud/"+annotations[i]] = annotations[i+1]
	}
	return n
}

func deployment(typ string, replicas *int32, annotations ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Labels: map[string]string{}, Annotations: namespace(annotations...).Annotations},
		Spec:       appsv1.DeploymentSpec{Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}},
	}
	if typ != "" {
		d.Labels["high-availability-config.resources.gardener.cloud/type"] = typ
	}
	return d
}

func autoscaler(minimum, maximum int32, labels map[string]string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "h", Labels: labels},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MinReplicas: &minimum, MaxReplicas: maximum, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "d"},
		},
	}
}

func TestReplicas(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace  *corev1.Namespace
		deployment *appsv1.Deployment
		scaled     bool
		want       int32
	}{
		"controller, nothing said":   {namespace(), deployment("controller", new(int32(1))), false, 2},
		"controller, no tolerance":   {namespace("failure-tolerance-type", ""), deployment("controller", new(int32(3))), false, 1},
		"controller, node":           {namespace("failure-tolerance-type", "node"), deployment("controller", nil), false, 2},
		"server, nothing said":       {namespace(), deployment("server", new(int32(1))), false, 2},
		"server, no tolerance":       {namespace("failure-tolerance-type", ""), deployment("server", new(int32(1))), false, 2},
		"server, zone":               {namespace("failure-tolerance-type", "zone"), deployment("server", new(int32(4))), false, 2},
		"neither":                    {namespace("failure-tolerance-type", "zone"), deployment("", new(int32(4))), false, 4},
		"no replicas":                {namespace(), deployment("server", new(int32(0))), false, 0},
		"a number of its own":        {namespace(), deployment("server", new(int32(1)), "replicas", "5"), false, 5},
		"more by an autoscaler":      {namespace(), deployment("server", new(int32(7))), true, 7},
		"fewer than by its standing": {namespace(), deployment("server", new(int32(1))), true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithObjects(tc.namespace)
			if tc.scaled {
				builder = builder.WithObjects(autoscaler(1, 9, nil))
			}
			h := &highAvailability{target: builder.Build()}
			if got := send(t, h.handle, "Deployment", tc.deployment); ptr.Deref(got.Spec.Replicas, -1) != tc.want {
				t.Errorf("replicas are %v, want %d", ptr.Deref(got.Spec.Replicas, -1), tc.want)
			}
		})
	}
}

func TestAutoscalerReplicas(t *testing.T) {
	h := &highAvailability{target: fake.NewClientBuilder().WithObjects(namespace()).Build()}
	got := send(t, h.handle, "HorizontalPodAutoscaler", autoscaler(1, 1, map[string]string{"high-availability-config.resources.gardener.cloud/type": "server"}))
	if *got.Spec.MinReplicas != 2 || got.Spec.MaxReplicas != 2 {
		t.Errorf("between %d and %d pods", *got.Spec.MinReplicas, got.Spec.MaxReplicas)
	}
}

func TestSpread(t *testing.T) {
	const hosts, zones = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
	constraint := func(key string, domains *int32, unsatisfiable corev1.UnsatisfiableConstraintAction) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{
			TopologyKey: key, MaxSkew: 1, MinDomains: domains, WhenUnsatisfiable: unsatisfiable,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		}
	}
	for name, tc := range map[string]struct {
		namespace   *corev1.Namespace
		replicas    int32
		annotations []string
		nodes       int
		want        []corev1.TopologySpreadConstraint
		zones       []string
	}{
		"one pod":  {namespace: namespace("zones", "a,b"), replicas: 1},
		"no zones": {namespace: namespace(), replicas: 2, want: []corev1.TopologySpreadConstraint{constraint(hosts, nil, "ScheduleAnyway")}},
		"one zone": {namespace: namespace("zones", "a"), replicas: 2, want: []corev1.TopologySpreadConstraint{constraint(hosts, nil, "ScheduleAnyway")}},
		"one zone, tolerant": {
			namespace: namespace("zones", "a", "failure-tolerance-type", "node"), replicas: 5, zones: []string{"a"},
			want: []corev1.TopologySpreadConstraint{constraint(hosts, new(int32(3)), "DoNotSchedule")},
		},
		"one zone, on several hosts": {
			namespace: namespace("zones", "a"), replicas: 2, annotations: []string{"host-spread", "true"}, nodes: 2,
			want: []corev1.TopologySpreadConstraint{constraint(hosts, new(int32(2)), "DoNotSchedule")},
		},
		"one zone, on several hosts, but there is one": {
			namespace: namespace("zones", "a"), replicas: 2, annotations: []string{"host-spread", "true"}, nodes: 1,
			want: []corev1.TopologySpreadConstraint{constraint(hosts, nil, "ScheduleAnyway")},
		},
		"one zone, tolerant, one host": {
			namespace: namespace("zones", "a", "failure-tolerance-type", "node"), replicas: 2, annotations: []string{"host-spread", "true"}, nodes: 1, zones: []string{"a"},
			want: []corev1.TopologySpreadConstraint{constraint(hosts, new(int32(2)), "DoNotSchedule")},
		},
		"three zones, pinned": {
			namespace: namespace("zones", "a, b,c,", "zone-pinning", "true"), replicas: 2, zones: []string{"a", "b", "c"},
			want: []corev1.TopologySpreadConstraint{constraint(hosts, nil, "ScheduleAnyway"), constraint(zones, new(int32(2)), "DoNotSchedule")},
		},
		"two zones, tolerant": {
			namespace: namespace("zones", "a,b", "failure-tolerance-type", "zone"), replicas: 3, zones: []string{"a", "b"},
			want: []corev1.TopologySpreadConstraint{constraint(hosts, nil, "DoNotSchedule"), constraint(zones, new(int32(2)), "DoNotSchedule")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithObjects(tc.namespace)
			for i := range tc.nodes {
				builder = builder.WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}})
			}
			h := &highAvailability{target: builder.Build(), notReady: new(int64(60))}
			d := deployment("", &tc.replicas, tc.annotations...)
			d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{constraint("rack", nil, "DoNotSchedule")}
			if tc.replicas > 1 {
				d.Spec.Template.Spec.TopologySpreadConstraints = append(d.Spec.Template.Spec.TopologySpreadConstraints, constraint(hosts, new(int32(9)), "DoNotSchedule"))
			}
			spec := send(t, h.handle, "Deployment", d).Spec.Template.Spec
			want := append([]corev1.TopologySpreadConstraint{constraint("rack", nil, "DoNotSchedule")}, tc.want...)
			if diff := cmp.Diff(want, spec.TopologySpreadConstraints); diff != "" {
				t.Errorf("constraints (-want +got):\n%s", diff)
			}
			var pinned []string
			if spec.Affinity != nil {
				pinned = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values
			}
			if diff := cmp.Diff(tc.zones, pinned, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("zones (-want +got):\n%s", diff)
			}
			tolerations := []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64(60))}}
			if diff := cmp.Diff(tolerations, spec.Tolerations); diff != "" {
				t.Errorf("tolerations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOneZoneIsLeft is about a Deployment that is admitted again when its namespace has one zone less.
func TestOneZoneIsLeft(t *testing.T) {
	d := deployment("", new(int32(2)))
	d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 2, WhenUnsatisfiable: "ScheduleAnyway"}, // its own
	}
	admit := func(zones string) (keys []string) {
		h := &highAvailability{target: fake.NewClientBuilder().WithObjects(namespace("zones", zones)).Build()}
		d = send(t, h.handle, "Deployment", d)
		for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
			keys = append(keys, fmt.Sprintf("%s %s", c.TopologyKey, c.WhenUnsatisfiable))
		}
		return keys
	}
	const hosts, own = "kubernetes.io/hostname ScheduleAnyway", "topology.kubernetes.io/zone ScheduleAnyway"
	if diff := cmp.Diff([]string{own, hosts}, admit("a")); diff != "" {
		t.Errorf("constraints in one zone (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{hosts, "topology.kubernetes.io/zone DoNotSchedule"}, admit("a,b")); diff != "" {
		t.Errorf("constraints in two zones (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{hosts}, admit("a")); diff != "" {
		t.Errorf("constraints in the zone that is left (-want +got):\n%s", diff)
	}
}

func TestMountToken(t *testing.T) {
	account := func(name string, automount *bool) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, AutomountServiceAccountToken: automount}
	}
	target := fake.NewClientBuilder().WithObjects(account("own", new(false)), account("usual", nil)).Build()
	pod := func(account string, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{
			ServiceAccountName: account, Containers: []corev1.Container{{Name: "c"}, {Name: "own", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: tokenPath}}}},
			InitContainers: []corev1.Container{{Name: "i"}},
		}}
		for _, c := range change {
			c(p)
		}
		return p
	}
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		seconds int64 // zero: nothing is mounted
	}{
		"of an account without":      {pod("own"), 43200},
		"of an account that has one": {pod("usual"), 0},
		"of the default account":     {pod("default"), 0},
		"of no account":              {pod(""), 0},
		"that does not want it": {pod("own", func(p *corev1.Pod) {
			p.Labels = map[string]string{"projected-token-mount.resources.gardener.cloud/skip": "true"}
		}), 0},
		"that refuses any":     {pod("own", func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(false) }), 0},
		"that asks for one":    {pod("own", func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(true) }), 43200},
		"that has one already": {pod("own", func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access-x"}} }), 0},
		"that says for how long": {pod("own", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"projected-token-mount.resources.gardener.cloud/expiration-seconds": "600"}
		}), 600},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.pod
			p.Namespace = "n"
			before := p.DeepCopy()
			if err := mountToken(t.Context(), target, p, 43200); err != nil {
				t.Fatal(err)
			}
			if tc.seconds == 0 {
				if diff := cmp.Diff(before, p); diff != "" {
					t.Errorf("the pod is changed:\n%s", diff)
				}
				return
			}
			if got := *p.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken.ExpirationSeconds; got != tc.seconds {
				t.Errorf("valid for %d seconds, want %d", got, tc.seconds)
			}
			mount := []corev1.VolumeMount{{Name: "kube-api-access-gardener", MountPath: tokenPath, ReadOnly: true}}
			if diff := cmp.Diff([][]corev1.VolumeMount{mount, mount, {{Name: "v", MountPath: tokenPath}}},
				[][]corev1.VolumeMount{p.Spec.InitContainers[0].VolumeMounts, p.Spec.Containers[0].VolumeMounts, p.Spec.Containers[1].VolumeMounts}); diff != "" {
				t.Errorf("mounts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherPodWebhooks(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pod-template-hash": "123abc"}},
		Spec: corev1.PodSpec{
			Containers:                []corev1.Container{{Name: "a"}, {Name: "b", Env: []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "own"}}}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}},
			Tolerations:               []corev1.Toleration{{Key: "there"}},
		},
	}
	setServiceHost(pod, "api.example")
	setSeccompProfile(pod)
	spreadTemplate(pod)
	nodes := fake.NewClientBuilder().WithObjects(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"system": "true"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "mine", Value: "v", Effect: "NoSchedule"}, {Key: "node.kubernetes.io/not-ready", Effect: "NoExecute"}}},
	}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "user"}}}}).Build()
	config := resourcemanagerconfigv1alpha1.SystemComponentsConfigWebhookConfig{
		NodeSelector: map[string]string{"system": "true"}, PodNodeSelector: map[string]string{"on": "system"}, PodTolerations: []corev1.Toleration{{Key: "there"}, {Key: "new"}},
	}
	if err := placeSystemComponent(t.Context(), nodes, pod, config); err != nil {
		t.Fatal(err)
	}
	want := corev1.PodSpec{
		Containers: []corev1.Container{
			{Name: "a", Env: []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "api.example"}}},
			{Name: "b", Env: []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "own"}}},
		},
		SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: "RuntimeDefault"}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x", "pod-template-hash": "123abc"}}},
		},
		NodeSelector: map[string]string{"on": "system"},
		Tolerations:  []corev1.Toleration{{Key: "there"}, {Key: "new"}, {Key: "mine", Operator: "Equal", Value: "v", Effect: "NoSchedule"}},
	}
	if diff := cmp.Diff(want, pod.Spec); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	daemon := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}}}
	if err := placeSystemComponent(t.Context(), nodes, daemon, config); err != nil || daemon.Spec.NodeSelector != nil {
		t.Errorf("a pod of a DaemonSet is moved: %v, %v", daemon.Spec, err)
	}
}

func TestProtect(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, metadata string
		refused        string
	}{
		"a definition that is protected":            {"CustomResourceDefinition", `{"name":"x","labels":{"gardener.cloud/deletion-protected":"true"}}`, `to delete CustomResourceDefinition "x"`},
		"a definition that is not":                  {"CustomResourceDefinition", `{"name":"x"}`, ""},
		"a definition that is protected, confirmed": {"CustomResourceDefinition", `{"labels":{"gardener.cloud/deletion-protected":"true"},"annotations":{"confirmation.gardener.cloud/deletion":"true"}}`, ""},
		"an object":            {"Worker", `{"name":"x"}`, "annotation confirmation.gardener.cloud/deletion must be true"},
		"an object, confirmed": {"Worker", `{"name":"x","annotations":{"confirmation.gardener.cloud/deletion":"true"}}`, ""},
		"an invalid object":    {"Worker", `"`, "decode the object"},
	} {
		t.Run(name, func(t *testing.T) {
			response := protect(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Kind: metav1.GroupVersionKind{Kind: tc.kind}, Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: []byte(`{"metadata":` + tc.metadata + `}`)},
			}})
			if response.Allowed != (tc.refused == "") || !response.Allowed && !strings.Contains(response.Result.Message, tc.refused) {
				t.Errorf("response is %+v, want %q", response.AdmissionResponse, tc.refused)
			}
		})
	}
}

func TestValidators(t *testing.T) {
	all := validators()
	config := resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{}
	config.Webhooks.ExtensionValidation.Enabled = true
	for _, object := range component.Webhooks(&config, component.Scope{URL: "https://x"}) {
		for _, webhook := range object.(*admissionregistrationv1.ValidatingWebhookConfiguration).Webhooks {
			if path := strings.TrimPrefix(*webhook.ClientConfig.URL, "https://x"); all[path] == nil {
				t.Errorf("%s is not served", path)
			}
		}
	}
	worker := func(typ string) runtime.RawExtension {
		return runtime.RawExtension{Raw: []byte(`{"metadata":{"name":"w","namespace":"n","resourceVersion":"1"},"spec":{"type":"` + typ + `","region":"r","secretRef":{"name":"s","namespace":"n"},"pools":[]}}`)}
	}
	for name, tc := range map[string]struct {
		request admissionv1.AdmissionRequest
		want    string
	}{
		"right":     {admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: worker("local")}, ""},
		"no type":   {admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: worker("")}, "spec.type: Required"},
		"unchanged": {admissionv1.AdmissionRequest{Operation: admissionv1.Update, Object: worker("local"), OldObject: worker("local")}, ""},
		"changed":   {admissionv1.AdmissionRequest{Operation: admissionv1.Update, Object: worker("other"), OldObject: worker("local")}, "spec.type: Invalid"},
		"status":    {admissionv1.AdmissionRequest{Operation: admissionv1.Update, SubResource: "status"}, ""},
		"no object": {admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte("[]")}}, "decode the object"},
	} {
		t.Run(name, func(t *testing.T) {
			response := all["/validate-extensions-gardener-cloud-v1alpha1-worker"](t.Context(), admission.Request{AdmissionRequest: tc.request})
			if response.Allowed != (tc.want == "") || !response.Allowed && !strings.Contains(response.Result.Message, tc.want) {
				t.Errorf("response is %+v, want %q", response.Result, tc.want)
			}
		})
	}
}
