package containerruntime

import (
	"context"
	"errors"
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
)

func TestTasks(t *testing.T) {
	type task struct {
		ID, Title        string
		After, IfPresent []string
	}
	// What extensions read exists: the name of the kubeconfig, credentials, referenced resources, and networks of the infrastructure.
	before := func(ids ...string) []string {
		return append([]string{"generic-kubeconfig", "cloudprovider", "cloudprovider-token", "references", "infrastructure"}, ids...)
	}
	for name, tc := range map[string]struct {
		in   Inputs
		want []task
	}{
		"running": {want: []task{
			{"container-runtimes", "Waiting until ContainerRuntimes are ready", []string{"namespace", "cluster", "kube-apiserver-ready"}, before("tokens")},
			{"stale-container-runtimes", "Deleting unused ContainerRuntimes", []string{"container-runtimes"}, nil},
		}},
		"hibernated": {in: Inputs{Hibernated: true}},
		"hibernated, restored": {in: Inputs{Hibernated: true, Restores: true}, want: []task{
			{"container-runtimes", "Waiting until ContainerRuntimes are ready", []string{"namespace", "cluster"}, before()},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []task
			for _, each := range Tasks(tc.in) {
				got = append(got, task{each.ID, each.Title, each.After, each.AfterIfPresent})
				if each.Timeout != 3*time.Minute {
					t.Errorf("task %s has the timeout %s", each.ID, each.Timeout)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDesired(t *testing.T) {
	config := &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
	got := Desired([]corev1beta1.Worker{
		{Name: "plain"},
		{Name: "a", CRI: &corev1beta1.CRI{ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "gvisor", ProviderConfig: config}, {Type: "kata"}}}},
		{Name: "b", CRI: &corev1beta1.CRI{ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "gvisor"}}}},
	})
	want := []Runtime{{"gvisor", "a", config}, {"kata", "a", nil}, {"gvisor", "b", nil}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Desired() (-want +got):\n%s", diff)
	}
}

// The class, which the extension or an operator may have set, stays.
func TestContainerRuntimeIsWritten(t *testing.T) {
	clusters := stagetest.New(t)
	in := Inputs{Run: clusters.Run(), Desired: []Runtime{{"gvisor", "a", &runtime.RawExtension{Raw: []byte(`{"a":1}`)}}, {"gvisor", "b", nil}}}
	got := &extensionsv1alpha1.ContainerRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "gvisor-a"}}
	class := extensionsv1alpha1.ExtensionClassShoot
	for _, before := range []*extensionsv1alpha1.ExtensionClass{nil, &class} {
		if before != nil {
			got.Spec.Class = before
			if err := clusters.Seed.Update(t.Context(), got); err != nil {
				t.Fatal(err)
			}
		}
		if err := stagetest.RunTask(t.Context(), t, Tasks(in), "container-runtimes"); err != nil {
			t.Fatal(err)
		}
		if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
			t.Fatal(err)
		}
		want := extensionsv1alpha1.ContainerRuntimeSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "gvisor", Class: before, ProviderConfig: in.Desired[0].Config},
			BinaryPath:  "/var/bin/containerruntimes",
			WorkerPool: extensionsv1alpha1.ContainerRuntimeWorkerPool{Name: "a", Selector: metav1.LabelSelector{MatchLabels: map[string]string{
				"worker.gardener.cloud/pool": "a", "worker.garden.sapcloud.io/group": "a",
			}}},
		}
		if diff := cmp.Diff(want, got.Spec); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]string{"gvisor-a", "gvisor-b"}, names(t, clusters)); diff != "" {
		t.Errorf("ContainerRuntimes (-want +got):\n%s", diff)
	}
}

// What no pool has any more is restored if there is an extension that can delete it, and deleted when the cluster runs.
func TestRemovedContainerRuntimes(t *testing.T) {
	for name, tc := range map[string]struct {
		installed bool
		desired   []Runtime
		want      []string
	}{
		"with an extension":    {installed: true, desired: []Runtime{{"gvisor", "a", nil}}, want: []string{"gvisor-a", "kata-a"}},
		"without an extension": {desired: []Runtime{{"gvisor", "a", nil}}, want: []string{"gvisor-a"}},
		"desired again":        {installed: true, desired: []Runtime{{"kata", "a", nil}}, want: []string{"kata-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			run := clusters.Run()
			run.Controller = func(context.Context, string, string) (*corev1beta1.ControllerInstallation, error) {
				if !tc.installed {
					return nil, nil
				}
				return &corev1beta1.ControllerInstallation{}, nil
			}
			saved := &corev1beta1.ShootStateSpec{Gardener: []corev1beta1.GardenerResourceData{
				{Name: "container-runtime-kata-a", Type: "container-runtime", Data: runtime.RawExtension{Raw: []byte(`{"type":"kata","workerPool":{"name":"a"}}`)}},
				{Name: "container-runtime-b", Type: "container-runtime", Data: runtime.RawExtension{Raw: []byte(`{`)}},
			}}
			in := Inputs{Run: run, Desired: tc.desired, Removed: Removed(saved), Hibernated: true, Restores: true}
			if err := stagetest.RunTask(t.Context(), t, Tasks(in), "container-runtimes"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, names(t, clusters)); diff != "" {
				t.Errorf("ContainerRuntimes that are restored (-want +got):\n%s", diff)
			}
			in.Hibernated, in.Restores, in.Removed = false, false, nil
			if err := stagetest.RunTask(t.Context(), t, Tasks(in), "stale-container-runtimes"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.desired[0].name()}, names(t, clusters)); diff != "" {
				t.Errorf("ContainerRuntimes when the cluster runs (-want +got):\n%s", diff)
			}
		})
	}
}

// A runtime that is restored only to be deleted need not work: it is enough that its extension has it, and deletes what it has in the shoot.
func TestRemovedContainerRuntimeIsBroken(t *testing.T) {
	for name, tc := range map[string]struct {
		broken, finalizer string
		fails             bool
	}{
		"a removed one":                          {broken: "kata-a", finalizer: "extensions.gardener.cloud/x"},
		"a removed one that its extension lacks": {broken: "kata-a", fails: true},
		"one of a worker pool":                   {broken: "gvisor-a", finalizer: "extensions.gardener.cloud/x", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			run := clusters.Run()
			run.Controller = func(context.Context, string, string) (*corev1beta1.ControllerInstallation, error) {
				return &corev1beta1.ControllerInstallation{}, nil
			}
			run.SeedAPI = interceptor.NewClient(clusters.Seed, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					err := c.List(ctx, list, options...)
					if runtimes, ok := list.(*extensionsv1alpha1.ContainerRuntimeList); ok {
						for i := range runtimes.Items {
							breakRuntime(&runtimes.Items[i], tc.broken, tc.finalizer)
						}
					}
					return err
				},
			})
			in := Inputs{Run: run, Desired: []Runtime{{"gvisor", "a", nil}}, Removed: []Runtime{{"kata", "a", nil}}, Restores: true}
			if err := stagetest.RunTaskUntilIdle(t, Tasks(in), "container-runtimes"); (err != nil) != tc.fails {
				t.Errorf("the error is %v, want one: %t", err, tc.fails)
			}
		})
	}
}

// breakRuntime has an extension report an error for the runtime of a name.
func breakRuntime(obj *extensionsv1alpha1.ContainerRuntime, name, finalizer string) {
	if obj.Name != name {
		return
	}
	if finalizer != "" {
		obj.Finalizers = []string{finalizer}
	}
	obj.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeRestore, State: corev1beta1.LastOperationStateError}
	obj.Status.LastError = &corev1beta1.LastError{Description: "broken"}
}

// Those of a pool or a type that was removed are deleted, and on the deletion of the cluster all of them. The task waits for their extension.
func TestContainerRuntimesAreDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		// finalizer is whether the extension still works on gvisor-former.
		finalizer, all bool
		want           []string
	}{
		"stale":                          {want: []string{"gvisor-a"}},
		"stale, its extension works":     {finalizer: true, want: []string{"gvisor-a", "gvisor-former"}},
		"all":                            {all: true},
		"all, one of an extension works": {all: true, finalizer: true, want: []string{"gvisor-former"}},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			for _, name := range []string{"gvisor-a", "gvisor-former"} {
				obj := &extensionsv1alpha1.ContainerRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: name}}
				if tc.finalizer && name == "gvisor-former" {
					obj.Finalizers = []string{"extensions.gardener.cloud/x"}
				}
				if err := clusters.Seed.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			other := &extensionsv1alpha1.ContainerRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--other", Name: "gvisor-former"}}
			if err := clusters.Seed.Create(t.Context(), other); err != nil {
				t.Fatal(err)
			}
			in := Inputs{Run: clusters.Run(), Desired: []Runtime{{Type: "gvisor", Pool: "a"}}}
			tasks, id := Tasks(in), "stale-container-runtimes"
			if tc.all {
				tasks, id = append(tasks, Deletion(in.Run)), "container-runtimes-gone"
			}
			for range 2 { // the second time finds it as it is
				err := stagetest.RunTaskUntilIdle(t, tasks, id)
				if waits := errors.Is(err, context.DeadlineExceeded); waits != tc.finalizer || err != nil && !waits {
					t.Errorf("the task waits: %v (%v)", waits, err)
				}
			}
			if diff := cmp.Diff(tc.want, names(t, clusters)); diff != "" {
				t.Errorf("ContainerRuntimes (-want +got):\n%s", diff)
			}
			if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
				t.Errorf("that of another cluster: %v", err)
			}
		})
	}
}

// names returns the names of the ContainerRuntimes of the cluster.
func names(t *testing.T, clusters *stagetest.Clusters) []string {
	t.Helper()
	list := &extensionsv1alpha1.ContainerRuntimeList{}
	if err := clusters.Seed.List(t.Context(), list, client.InNamespace(stagetest.Namespace)); err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := range list.Items {
		all = append(all, list.Items[i].Name)
	}
	return all
}
