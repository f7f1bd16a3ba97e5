package extension

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/test/builder"
)

func TestTasks(t *testing.T) {
	in := Inputs{
		Desired: []Extension{
			{Type: "early", Reconcile: corev1beta1.BeforeKubeAPIServer, Reconciled: true},
			{Type: "late", Reconcile: corev1beta1.AfterWorker, Timeout: time.Hour},
			{Type: "usual", Reconcile: corev1beta1.AfterKubeAPIServer},
		},
		Stale: []Extension{{Type: "former"}},
	}
	type task struct {
		ID, Title        string
		After, IfPresent []string
		Timeout          time.Duration
	}
	// What extensions read is there: the name of the kubeconfig, credentials, referenced resources, and networks of the infrastructure.
	before := func(ids ...string) []string {
		return append([]string{"generic-kubeconfig", "cloudprovider", "cloudprovider-token", "references", "infrastructure"}, ids...)
	}
	for name, tc := range map[string]struct {
		hibernates, hibernated bool
		want, last             []task
		// apiServer and worker are the tasks before the kube-apiserver, and before node configuration.
		apiServer, worker []string
	}{
		"running": {apiServer: []string{"extension-early"}, worker: []string{"extension-early", "extension-usual"}, want: []task{
			{"extension-early", "Waiting until Extension early is ready", []string{"namespace", "cluster"}, before(), 10 * time.Minute},
			{"extension-late", "Waiting until Extension late is ready", []string{"namespace", "cluster", "kube-apiserver-ready"}, before("tokens", "worker"), time.Hour},
			{"extension-usual", "Waiting until Extension usual is ready", []string{"namespace", "cluster", "kube-apiserver-ready"}, before("tokens"), 10 * time.Minute},
			{"extension-former-gone", "Deleting Extension former", []string{"cluster", "kube-apiserver-ready"}, nil, 10 * time.Minute},
		}},
		"hibernating": {hibernates: true, worker: []string{"extension-usual"}, want: []task{
			{"extension-late", "Waiting until Extension late is ready", []string{"namespace", "cluster", "kube-apiserver-ready"}, before("tokens", "worker"), time.Hour},
			{"extension-usual", "Waiting until Extension usual is ready", []string{"namespace", "cluster", "kube-apiserver-ready"}, before("tokens"), 10 * time.Minute},
			{"extension-former-gone", "Deleting Extension former", []string{"cluster", "kube-apiserver-ready"}, nil, 10 * time.Minute},
		}, last: []task{
			{"extension-early", "Waiting until Extension early is ready", []string{"namespace", "cluster", "stop-kube-apiserver"}, before(), 10 * time.Minute},
		}},
		"hibernated": {hibernated: true, apiServer: []string{"extension-early"}, worker: []string{"extension-early", "extension-usual"}, want: []task{
			{"extension-early", "Waiting until Extension early is ready", []string{"namespace", "cluster"}, before(), 10 * time.Minute},
			{"extension-late", "Waiting until Extension late is ready", []string{"namespace", "cluster"}, before(), time.Hour},
			{"extension-usual", "Waiting until Extension usual is ready", []string{"namespace", "cluster"}, before(), 10 * time.Minute},
			{"extension-former-gone", "Deleting Extension former", []string{"cluster"}, nil, 2 * time.Minute},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in.Hibernates, in.Hibernated = tc.hibernates, tc.hibernated
			readable := func(tasks []flow.Task) []task {
				var out []task
				for _, each := range tasks {
					out = append(out, task{each.ID, each.Title, each.After, each.AfterIfPresent, each.Timeout})
				}
				return out
			}
			if diff := cmp.Diff(tc.want, readable(Tasks(in))); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.last, readable(HibernationTasks(in, "stop-kube-apiserver"))); diff != "" {
				t.Errorf("tasks after the kube-apiserver is stopped (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.worker, in.IDsBeforeWorker()); diff != "" {
				t.Errorf("tasks before the Worker (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.apiServer, in.IDsBeforeAPIServer()); diff != "" {
				t.Errorf("tasks before the kube-apiserver (-want +got):\n%s", diff)
			}
		})
	}
}

// The kube-apiserver of a shoot that is created hibernated runs for a moment, and may need an Extension.
func TestNewExtensionOfAHibernatedShoot(t *testing.T) {
	in := Inputs{Desired: []Extension{{Type: "early", Reconcile: corev1beta1.BeforeKubeAPIServer}}, Hibernates: true}
	if diff := cmp.Diff([]string{"extension-early"}, in.IDsBeforeAPIServer()); diff != "" {
		t.Errorf("tasks before the kube-apiserver (-want +got):\n%s", diff)
	}
	if tasks := Tasks(in); len(tasks) != 1 || slices.Contains(tasks[0].After, "kube-apiserver-ready") {
		t.Errorf("tasks %+v", tasks)
	}
	if last := HibernationTasks(in); len(last) > 0 {
		t.Errorf("tasks after the kube-apiserver is stopped: %+v", last)
	}
}

// The class, which the extension or an operator may have set, stays.
func TestExtensionIsWritten(t *testing.T) {
	clusters := stagetest.New(t)
	in := Inputs{Run: clusters.Run(), Desired: []Extension{{Type: "dns", Config: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}}}}
	got := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "dns"}}
	class := extensionsv1alpha1.ExtensionClassShoot
	for _, before := range []*extensionsv1alpha1.ExtensionClass{nil, &class} {
		if before != nil {
			got.Spec.Class = before
			if err := clusters.Seed.Update(t.Context(), got); err != nil {
				t.Fatal(err)
			}
		}
		if err := stagetest.RunTask(t.Context(), t, Tasks(in), "extension-dns"); err != nil {
			t.Fatal(err)
		}
		if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
			t.Fatal(err)
		}
		want := extensionsv1alpha1.DefaultSpec{Type: "dns", Class: before, ProviderConfig: in.Desired[0].Config}
		if diff := cmp.Diff(want, got.Spec.DefaultSpec); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}
	}
}

// A running cluster waits until its extension has removed its finalizer, a hibernated one does not: the extension may need the kube-apiserver.
func TestStaleExtensionIsDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		exists, finalizer, hibernated bool
		waits                         bool
	}{
		"it does not exist":             {},
		"its extension has deleted it":  {exists: true},
		"its extension works on it":     {exists: true, finalizer: true, waits: true},
		"the cluster is hibernated":     {exists: true, finalizer: true, hibernated: true},
		"hibernated, and already gone":  {hibernated: true},
		"hibernated, without finalizer": {exists: true, hibernated: true},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			stale := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "former"}}
			if tc.finalizer {
				stale.Finalizers = []string{"extensions.gardener.cloud/x"}
			}
			if tc.exists {
				if err := clusters.Seed.Create(t.Context(), stale); err != nil {
					t.Fatal(err)
				}
			}
			in := Inputs{Run: clusters.Run(), Stale: []Extension{{Type: "former"}}, Hibernated: tc.hibernated}
			for range 2 {
				err := stagetest.RunTaskUntilIdle(t, Tasks(in), "extension-former-gone")
				if waits := errors.Is(err, context.DeadlineExceeded); waits != tc.waits || err != nil && !waits {
					t.Errorf("the task waits: %v (%v)", waits, err)
				}
			}
			list := &extensionsv1alpha1.ExtensionList{}
			if err := clusters.Seed.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			if left := len(list.Items) > 0; left != tc.finalizer || left && list.Items[0].DeletionTimestamp == nil {
				t.Errorf("%d Extensions are left: %+v", len(list.Items), list.Items)
			}
		})
	}
}

func TestExtensionsFail(t *testing.T) {
	fails := errors.New("no answer")
	clusters := stagetest.New(t)
	in := Inputs{Run: clusters.Run(), Desired: []Extension{{Type: "dns"}}, Stale: []Extension{{Type: "former"}}}
	in.Run.SeedAPI = interceptor.NewClient(clusters.Seed, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return fails
		},
	})
	for _, hibernated := range []bool{false, true} {
		in.Hibernated = hibernated
		for _, task := range Tasks(in) {
			if err := task.Run(t.Context()); !errors.Is(err, fails) {
				t.Errorf("task %s: %v", task.ID, err)
			}
		}
	}
}

func registration(resources ...corev1beta1.ControllerResource) corev1beta1.ControllerRegistration {
	return corev1beta1.ControllerRegistration{Spec: corev1beta1.ControllerRegistrationSpec{Resources: resources}}
}

func TestDesired(t *testing.T) {
	auto := []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot}
	usual := Extension{Type: "a", Reconcile: corev1beta1.AfterKubeAPIServer, Delete: corev1beta1.BeforeKubeAPIServer, Migrate: corev1beta1.BeforeKubeAPIServer}
	configured := usual
	configured.Config = &runtime.RawExtension{Raw: []byte("{}")}
	own := Extension{Type: "a", Reconcile: corev1beta1.AfterWorker, Delete: corev1beta1.AfterKubeAPIServer, Migrate: corev1beta1.AfterKubeAPIServer, Timeout: time.Minute}
	for name, tc := range map[string]struct {
		resource   corev1beta1.ControllerResource
		extensions []corev1beta1.Extension
		workers    int
		want       []Extension
	}{
		"not requested": {resource: corev1beta1.ControllerResource{Kind: "Extension", Type: "a"}, workers: 1},
		"requested": {
			resource: corev1beta1.ControllerResource{Kind: "Extension", Type: "a"}, workers: 1,
			extensions: []corev1beta1.Extension{{Type: "a", ProviderConfig: configured.Config}}, want: []Extension{configured},
		},
		"enabled by default": {resource: corev1beta1.ControllerResource{Kind: "Extension", Type: "a", AutoEnable: auto}, workers: 1, want: []Extension{usual}},
		"enabled by default, and disabled": {
			resource: corev1beta1.ControllerResource{Kind: "Extension", Type: "a", AutoEnable: auto}, workers: 1,
			extensions: []corev1beta1.Extension{{Type: "a", Disabled: new(true)}},
		},
		"enabled for seeds only": {
			resource: corev1beta1.ControllerResource{Kind: "Extension", Type: "a", AutoEnable: []corev1beta1.ClusterType{corev1beta1.ClusterTypeSeed}}, workers: 1,
		},
		"workerless, which is not supported": {resource: corev1beta1.ControllerResource{Kind: "Extension", Type: "a", AutoEnable: auto}},
		"workerless, which is supported": {
			resource: corev1beta1.ControllerResource{Kind: "Extension", Type: "a", AutoEnable: auto, WorkerlessSupported: new(true)}, want: []Extension{usual},
		},
		"of another kind": {resource: corev1beta1.ControllerResource{Kind: "Network", Type: "a", AutoEnable: auto}, workers: 1},
		"not the primary": {resource: corev1beta1.ControllerResource{Kind: "Extension", Type: "a", AutoEnable: auto, Primary: new(false)}, workers: 1},
		"with a lifecycle": {
			resource: corev1beta1.ControllerResource{
				Kind: "Extension", Type: "a", AutoEnable: auto, ReconcileTimeout: &metav1.Duration{Duration: time.Minute},
				Lifecycle: &corev1beta1.ControllerResourceLifecycle{
					Reconcile: new(corev1beta1.AfterWorker), Delete: new(corev1beta1.AfterKubeAPIServer), Migrate: new(corev1beta1.AfterKubeAPIServer),
				},
			}, workers: 1, want: []Extension{own},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := builder.Shoot("a", builder.Workers(tc.workers))
			shoot.Spec.Extensions = tc.extensions
			got := Desired(shoot, []corev1beta1.ControllerRegistration{registration(tc.resource)})
			if len(got) == 0 && len(tc.want) == 0 {
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Desired() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStale(t *testing.T) {
	existing := []extensionsv1alpha1.Extension{
		{ObjectMeta: metav1.ObjectMeta{Name: "desired"}}, {ObjectMeta: metav1.ObjectMeta{Name: "registered"}}, {ObjectMeta: metav1.ObjectMeta{Name: "unknown"}},
	}
	got := Stale(existing, []Extension{{Type: "desired"}}, []corev1beta1.ControllerRegistration{registration(
		corev1beta1.ControllerResource{Kind: "Extension", Type: "registered", Lifecycle: &corev1beta1.ControllerResourceLifecycle{Delete: new(corev1beta1.AfterKubeAPIServer)}},
		corev1beta1.ControllerResource{Kind: "Network", Type: "unknown", Lifecycle: &corev1beta1.ControllerResourceLifecycle{Delete: new(corev1beta1.AfterWorker)}},
	)})
	want := []Extension{
		{Type: "registered", Reconcile: corev1beta1.AfterKubeAPIServer, Delete: corev1beta1.AfterKubeAPIServer, Migrate: corev1beta1.BeforeKubeAPIServer},
		{Type: "unknown", Reconcile: corev1beta1.AfterKubeAPIServer, Delete: corev1beta1.BeforeKubeAPIServer, Migrate: corev1beta1.BeforeKubeAPIServer},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Stale() (-want +got):\n%s", diff)
	}
}
