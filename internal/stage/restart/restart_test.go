package restart

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func inputs(clusters *stagetest.Clusters) Inputs {
	return Inputs{Run: clusters.Run(), At: func() time.Time { return noon }}
}

func deployment(namespace, name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}}
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// restarted returns the workloads of a namespace whose pods are replaced, with the time of it.
func restarted(t *testing.T, c client.Client, namespace string) map[string]string {
	t.Helper()
	deployments, daemonSets := &appsv1.DeploymentList{}, &appsv1.DaemonSetList{}
	if err := errors.Join(c.List(t.Context(), deployments, client.InNamespace(namespace)), c.List(t.Context(), daemonSets, client.InNamespace(namespace))); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i := range deployments.Items {
		if at := deployments.Items[i].Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]; at != "" {
			all[deployments.Items[i].Name] = at
		}
	}
	for i := range daemonSets.Items {
		if at := daemonSets.Items[i].Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]; at != "" {
			all[daemonSets.Items[i].Name] = at
		}
	}
	return all
}

func TestTasks(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Inputs
		want []string
	}{
		"nothing is requested": {},
		"control plane":        {in: Inputs{ControlPlane: []string{"kube-controller-manager"}}, want: []string{"restart-control-plane"}},
		"system components":    {in: Inputs{SystemComponents: true}, want: []string{"restart-system-components"}},
		"both": {
			in: Inputs{ControlPlane: []string{"kube-controller-manager"}, SystemComponents: true}, want: []string{"restart-control-plane", "restart-system-components"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, task := range Tasks(tc.in) {
				got = append(got, task.ID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
		})
	}
}

// Pods that extensions have labelled are deleted once: those that replace them are newer than the restart.
func TestRestartOfTheControlPlane(t *testing.T) {
	clusters := stagetest.New(t)
	pod := func(name, label string, created time.Duration) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: stagetest.Namespace, Name: name, Labels: map[string]string{"maintenance.gardener.cloud/restart": label},
			CreationTimestamp: metav1.NewTime(noon.Add(created)),
		}}
	}
	elsewhere := pod("elsewhere", "true", -time.Hour)
	elsewhere.Namespace = "shoot--dev--other"
	create(t, clusters.Seed,
		deployment(stagetest.Namespace, "kube-controller-manager"), deployment(stagetest.Namespace, "kube-apiserver"),
		pod("old", "true", -time.Hour), pod("new", "true", time.Minute), pod("unlabelled", "false", -time.Hour), elsewhere)
	in := inputs(clusters)
	in.ControlPlane = []string{"kube-controller-manager", "kube-scheduler"} // a Deployment that does not exist has no pods
	for range 2 {
		if err := stagetest.RunTask(t.Context(), t, Tasks(in), "restart-control-plane"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"kube-controller-manager": "2026-03-04T12:00:00Z"}, restarted(t, clusters.Seed, stagetest.Namespace)); diff != "" {
			t.Errorf("restarts (-want +got):\n%s", diff)
		}
		pods := &corev1.PodList{}
		if err := clusters.Seed.List(t.Context(), pods); err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range pods.Items {
			names = append(names, pods.Items[i].Name)
		}
		slices.Sort(names)
		if diff := cmp.Diff([]string{"elsewhere", "new", "unlabelled"}, names); diff != "" {
			t.Errorf("pods (-want +got):\n%s", diff)
		}
	}
}

func TestRestartOfSystemComponents(t *testing.T) {
	clusters := stagetest.New(t)
	daemonSet := func(name string) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
	}
	create(t, clusters.Shoot,
		deployment("kube-system", "coredns"), deployment("kube-system", "metrics-server"), daemonSet("kube-proxy-a-v1.36.3"), daemonSet("kube-flannel"))
	in := inputs(clusters)
	in.SystemComponents = true
	want := map[string]string{"coredns": "2026-03-04T12:00:00Z", "kube-proxy-a-v1.36.3": "2026-03-04T12:00:00Z"}
	for range 2 {
		if err := stagetest.RunTask(t.Context(), t, Tasks(in), "restart-system-components"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, restarted(t, clusters.Shoot, "kube-system")); diff != "" {
			t.Errorf("restarts (-want +got):\n%s", diff)
		}
	}
}

func TestRestartFails(t *testing.T) {
	fails := errors.New("no answer")
	broken := interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return fails
	}}
	clusters := stagetest.New(t)
	in := inputs(clusters)
	in.ControlPlane, in.SystemComponents = []string{"kube-controller-manager"}, true
	in.Run.SeedAPI = interceptor.NewClient(clusters.Seed, broken)
	in.Run.Target = stage.NewConnectedTarget(interceptor.NewClient(clusters.Shoot, broken), stagetest.Discover)
	for _, id := range []string{"restart-control-plane", "restart-system-components"} {
		if err := stagetest.RunTask(t.Context(), t, Tasks(in), id); !errors.Is(err, fails) {
			t.Errorf("task %s: %v", id, err)
		}
	}
}
