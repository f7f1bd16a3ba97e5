package garden

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/imagevector"
)

// A version of Kubernetes whose image does not exist can be changed back to the one that runs, or to any before the first one runs. One with which a
// kube-apiserver has started cannot.
func TestVersionThatNeverRan(t *testing.T) {
	scheme := k8sruntime.NewScheme()
	if err := operatorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pulls := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}
	runs := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	crashes := corev1.ContainerStatus{RestartCount: 1, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
	evicted := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error"}}}
	type pod struct {
		tag    string
		status corev1.ContainerStatus
	}
	reconciled := operatorv1alpha1.GardenStatus{Credentials: &operatorv1alpha1.Credentials{EncryptionAtRest: &operatorv1alpha1.EncryptionAtRest{}}}
	const refused = "spec.virtualCluster.kubernetes.version"
	for name, tc := range map[string]struct {
		status     operatorv1alpha1.GardenStatus
		pods       []pod
		from, to   string
		everything bool // one image for all versions
		refused    bool
	}{
		"back to what runs":                           {status: reconciled, pods: []pod{{"v1.35.4", runs}, {"v1.36.99", pulls}}, from: "1.36.99", to: "1.35.4"},
		"back to another one":                         {status: reconciled, pods: []pod{{"v1.35.4", runs}, {"v1.36.99", pulls}}, from: "1.36.99", to: "1.35.3", refused: true},
		"back, but the new one has started":           {status: reconciled, pods: []pod{{"v1.35.4", runs}, {"v1.36.1", runs}}, from: "1.36.1", to: "1.35.4", refused: true},
		"back, but the new one crashes":               {status: reconciled, pods: []pod{{"v1.35.4", runs}, {"v1.36.1", crashes}}, from: "1.36.1", to: "1.35.4", refused: true},
		"back, but nothing runs any more":             {status: reconciled, pods: []pod{{"v1.36.99", pulls}}, from: "1.36.99", to: "1.35.4", refused: true},
		"back, but it was only evicted":               {status: reconciled, pods: []pod{{"v1.35.4", evicted}, {"v1.36.1", pulls}}, from: "1.36.1", to: "1.35.4", refused: true},
		"back, but an evicted one has started":        {status: reconciled, pods: []pod{{"v1.35.4", runs}, {"v1.36.1", evicted}}, from: "1.36.1", to: "1.35.4", refused: true},
		"back to what runs, and one was evicted":      {status: reconciled, pods: []pod{{"v1.35.4", runs}, {"v1.35.4", evicted}}, from: "1.36.99", to: "1.35.4"},
		"back, but the image says nothing":            {status: reconciled, pods: []pod{{"all", runs}}, everything: true, from: "1.36.1", to: "1.35.4", refused: true},
		"a first Garden":                              {pods: []pod{{"v1.36.99", pulls}}, from: "1.36.99", to: "1.36.1"},
		"a first Garden without pods":                 {from: "1.34.99", to: "1.36.1"},
		"a first Garden whose kube-apiserver runs":    {pods: []pod{{"v1.36.1", runs}}, from: "1.36.1", to: "1.35.4", refused: true},
		"an upgrade":                                  {status: reconciled, pods: []pod{{"v1.35.4", runs}}, from: "1.35.4", to: "1.36.1"},
		"an upgrade that skips a minor version":       {status: reconciled, pods: []pod{{"v1.34.4", runs}}, from: "1.34.4", to: "1.36.1", refused: true},
		"an upgrade that skips one that never ran":    {status: reconciled, pods: []pod{{"v1.34.4", runs}, {"v1.35.99", pulls}}, from: "1.35.99", to: "1.36.1", refused: true},
		"an upgrade while the former one still runs":  {status: reconciled, pods: []pod{{"v1.34.4", runs}, {"v1.35.4", runs}}, from: "1.35.4", to: "1.36.1", refused: true},
		"another patch version of one that never ran": {status: reconciled, pods: []pod{{"v1.34.4", runs}, {"v1.35.9", pulls}}, from: "1.35.9", to: "1.35.10"},
		"an upgrade from an image that says nothing":  {status: reconciled, pods: []pod{{"other", runs}}, from: "1.35.4", to: "1.36.1"},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(scheme)
			for i, p := range tc.pods {
				p.status.Name = "virtual-garden-kube-apiserver"
				phase := corev1.PodRunning
				if p.status.State.Terminated != nil {
					phase = corev1.PodFailed
				}
				builder.WithObjects(&corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: string(rune('a' + i)), Labels: map[string]string{"app": "kubernetes", "role": "apiserver"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: p.status.Name, Image: "registry.example/kube-apiserver:" + p.tag}}},
					Status:     corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{p.status}},
				})
			}
			source := imagevector.Source{Name: "kube-apiserver", Repository: new("registry.example/kube-apiserver")}
			if tc.everything {
				source.Tag = new("all")
			}
			h := &Validator{Decoder: admission.NewDecoder(scheme), Reader: builder.Build(), Images: imagevector.Vector{source}}
			garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "g", ResourceVersion: "1"}, Status: tc.status}
			garden.Spec.VirtualCluster.Kubernetes.Version = tc.from
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Update, Name: "g"}}
			request.OldObject.Raw = encode(t, garden)
			garden.Spec.VirtualCluster.Kubernetes.Version = tc.to
			request.Object.Raw = encode(t, garden)
			response := h.Handle(t.Context(), request)
			// Other fields are missing, which is refused, too.
			if response.Result.Code != 422 || strings.Contains(response.Result.Message, refused) != tc.refused {
				t.Errorf("got %d, %s, want an error of %s: %t", response.Result.Code, response.Result.Message, refused, tc.refused)
			}
		})
	}
}

// Images of a mirror have digests, and image vectors list which version they are of.
func TestVersionOfImage(t *testing.T) {
	h := &Validator{Images: imagevector.Vector{
		{Name: "kube-apiserver", Repository: new("registry.example/kube-apiserver")},
		{Name: "kube-apiserver", Ref: new("mirror.example/kube-apiserver@sha256:b"), TargetVersion: new("= 1.36.1")},
		{Name: "kube-apiserver", Ref: new("mirror.example/kube-apiserver@sha256:a"), TargetVersion: new("1.35.4")},
		{Name: "kube-apiserver", Ref: new("mirror.example/kube-apiserver@sha256:c"), TargetVersion: new("1.34.1")},
		{Name: "kube-apiserver", Ref: new("mirror.example/kube-apiserver@sha256:c"), TargetVersion: new("1.34.2")},
		{Name: "kube-controller-manager", Ref: new("mirror.example/kube-apiserver@sha256:d"), TargetVersion: new("1.34.3")},
	}}
	for image, want := range map[string]string{
		"registry.example/kube-apiserver:v1.35.9": "1.35.9",
		"registry.example/kube-apiserver:v1.35.4": "", // the image vector has another one for this version
		"registry.example/kube-apiserver:latest":  "",
		"registry.example/kube-apiserver":         "",
		"elsewhere.example/kube-apiserver:v1.3.0": "",
		"mirror.example/kube-apiserver@sha256:a":  "1.35.4",
		"mirror.example/kube-apiserver@sha256:b":  "1.36.1",
		"mirror.example/kube-apiserver@sha256:c":  "", // of two versions
		"mirror.example/kube-apiserver@sha256:d":  "",
	} {
		got := ""
		if version := h.versionOf(image); version != nil {
			got = version.String()
		}
		if got != want {
			t.Errorf("version of %s: %q, want %q", image, got, want)
		}
	}
}

// Users are told if the image vector lists versions of Kubernetes, and not theirs.
func TestVersionWarnings(t *testing.T) {
	images := imagevector.Vector{
		{Name: "kube-apiserver", Repository: new("registry.example/kube-apiserver")},
		{Name: "kube-apiserver", Ref: new("mirror.example/kube-apiserver@sha256:b"), TargetVersion: new("1.36.1")},
		{Name: "kube-apiserver", Ref: new("mirror.example/kube-apiserver@sha256:a"), TargetVersion: new("1.35.4")},
	}
	for name, tc := range map[string]struct {
		images  imagevector.Vector
		version string
		want    []string
	}{
		"a listed one": {images: images, version: "1.35.4"},
		"another one": {images: images, version: "1.36.2", want: []string{
			"spec.virtualCluster.kubernetes.version: the image vector of gardener-operator has images for 1.35.4, 1.36.1, and not for 1.36.2: " +
				"registry.example/kube-apiserver:v1.36.2 must exist, or kube-apiserver does not start",
		}},
		"none is listed": {images: images[:1], version: "1.36.2"},
		"not a version":  {images: images, version: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			garden := &operatorv1alpha1.Garden{}
			garden.Spec.VirtualCluster.Kubernetes.Version = tc.version
			if diff := cmp.Diff(tc.want, (&Validator{Images: tc.images}).versionWarnings(garden)); diff != "" {
				t.Errorf("versionWarnings() (-want +got):\n%s", diff)
			}
		})
	}
}
