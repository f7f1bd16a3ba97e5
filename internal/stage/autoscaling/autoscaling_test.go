package autoscaling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/clusterautoscaler"
	"gardener.cloud/gardener/internal/component/kubescheduler"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/nodes"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

func TestTasks(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Inputs
		want string
	}{
		"desired":                {Inputs{Desired: true}, "cluster-autoscaler"},
		"no elastic pool":        {Inputs{}, "stale-cluster-autoscaler"},
		"hibernates":             {Inputs{Desired: true, Hibernates: true}, "stop-cluster-autoscaler"},
		"hibernates, without it": {Inputs{Hibernates: true}, "stale-cluster-autoscaler"},
	} {
		t.Run(name, func(t *testing.T) {
			if tasks := Tasks(tc.in); len(tasks) != 1 || tasks[0].ID != tc.want {
				t.Errorf("tasks are %v, want %s", tasks, tc.want)
			}
		})
	}
}

// seed returns a seed in which nothing is reconciled.
func seed(t *testing.T, functions interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := stagetest.Scheme(t)
	if err := machinev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	functions.Watch = stagetest.WatchWithoutList
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&extensionsv1alpha1.Worker{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithInterceptorFuncs(functions).Build()
}

func inputs(c client.WithWatch) Inputs {
	return Inputs{
		Run: &stage.Run{
			SeedAPI: c, Namespace: stagetest.Namespace, Name: stagetest.Name, FieldManager: "gardenlet", Clock: clock.RealClock{},
			Target: stage.NewConnectedTarget(fake.NewClientBuilder().WithScheme(c.Scheme()).Build(), stagetest.Discover),
			Autoscalers: func(objects []client.Object) []client.Object {
				return workload.ControlPlaneAutoscalers(objects, func(string) workload.Autoscaling { return workload.Autoscaling{} })
			},
		},
		Desired: true, Nodes: &nodes.Result{},
		Values: func(replicas int32, deployments []extensionsv1alpha1.MachineDeployment, machines int) (clusterautoscaler.Values, error) {
			return clusterautoscaler.Values{
				Namespace: stagetest.Namespace, Image: "registry.example/autoscaler:v1", Replicas: replicas, GenericKubeconfig: "kubeconfig", KubernetesVersion: "1.36.3",
				MachineDeployments: deployments, MaxNodesTotal: int64(machines),
			}, nil
		},
	}
}

func machine(name string) client.Object {
	return &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: name}}
}

// The groups of nodes are those of the current pools, but machines that are not ready, for which more may be needed, are not waited for.
func TestGroupsAreThoseOfTheWorker(t *testing.T) {
	then := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	later := metav1.NewTime(then.Add(time.Second))
	now := metav1.Now()
	succeeded := &corev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded", LastUpdateTime: now}
	processing := &corev1beta1.LastOperation{Type: "Reconcile", State: "Processing", LastUpdateTime: now, Progress: 50, Description: "0 of 1 machines are ready"}
	failed := &corev1beta1.LastOperation{Type: "Reconcile", State: "Error", LastUpdateTime: now}
	for name, tc := range map[string]struct {
		before, after *metav1.Time
		last          *corev1beta1.LastOperation
		code          corev1beta1.ErrorCode
		early         bool
		want          string // the group, or the error
	}{
		"the first report":                      {after: &then, last: processing, want: "--nodes=1:3:shoot--dev--crazy-botany.a"},
		"a new report, machines are not ready":  {before: &then, after: &later, last: processing, want: "--nodes=1:3:shoot--dev--crazy-botany.a"},
		"no report, but it is ready":            {before: &then, after: &then, last: succeeded, want: "--nodes=1:3:shoot--dev--crazy-botany.a"},
		"no report":                             {last: processing, want: "0 of 1 machines are ready"},
		"the report from before":                {before: &then, after: &then, last: processing, want: "0 of 1 machines are ready"},
		"an error that the user has to fix":     {before: &then, after: &then, last: failed, code: corev1beta1.ErrorConfigurationProblem, want: "the user has to fix it"},
		"an error, but the groups are reported": {before: &then, after: &later, last: failed, code: corev1beta1.ErrorInfraQuotaExceeded, want: "--nodes=1:3:shoot--dev--crazy-botany.a"},
		"the Worker is not written yet":         {early: true, after: &then, last: succeeded, want: "before the task worker-deployed is done"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{
					Namespace: stagetest.Namespace, Name: stagetest.Name, Annotations: map[string]string{"gardener.cloud/timestamp": now.UTC().Format(time.RFC3339Nano)},
				}}
				worker.Status.LastOperation, worker.Status.MachineDeploymentsLastUpdateTime = tc.last, tc.after
				worker.Status.MachineDeployments = []extensionsv1alpha1.MachineDeployment{{Name: "a", Minimum: 1, Maximum: 3}}
				if tc.code != "" {
					worker.Status.LastError = &corev1beta1.LastError{Description: "no luck", Codes: []corev1beta1.ErrorCode{tc.code}}
				}
				c := seed(t, interceptor.Funcs{}, worker, machine("one"), machine("two"))
				in := inputs(c)
				if !tc.early {
					in.Nodes.Worker = &extensionsv1alpha1.Worker{Status: extensionsv1alpha1.WorkerStatus{MachineDeploymentsLastUpdateTime: tc.before}}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				err := stagetest.RunTask(ctx, t, Tasks(in), "cluster-autoscaler")
				deployment := &appsv1.Deployment{}
				notFound := c.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: "cluster-autoscaler"}, deployment)
				if !strings.HasPrefix(tc.want, "--") {
					if err == nil || !strings.Contains(err.Error(), tc.want) || notFound == nil {
						t.Errorf("error is %v, and the Deployment exists: %t", err, notFound == nil)
					}
					return
				}
				if err := errors.Join(err, notFound); err != nil {
					t.Fatal(err)
				}
				command := deployment.Spec.Template.Spec.Containers[0].Command
				if !slices.Contains(command, tc.want) || !slices.Contains(command, "--max-nodes-total=2") || *deployment.Spec.Replicas != 1 {
					t.Errorf("%d pods with the command %q", *deployment.Spec.Replicas, command)
				}
				permissions := &resourcesv1alpha1.ManagedResource{}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: "shoot-core-cluster-autoscaler"}, permissions); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// When machines are deleted for a hibernation, no cluster-autoscaler starts new ones.
func TestHibernationWaitsForTheEndOfPods(t *testing.T) {
	worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: stagetest.Name}}
	for name, existing := range map[string][]client.Object{"a running one": {worker}, "a new shoot has no Worker": nil} {
		// The time is over when nothing else happens any more, however busy the computer is.
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "cluster-autoscaler-1", Labels: clusterautoscaler.Labels()}}
				c := seed(t, interceptor.Funcs{}, append(existing, pod)...)
				in := inputs(c)
				in.Hibernates = true
				stop := func() error {
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					defer cancel()
					return stagetest.RunTask(ctx, t, Tasks(in), "stop-cluster-autoscaler")
				}
				if err := stop(); err == nil || !strings.Contains(err.Error(), `Pod "cluster-autoscaler-1" has not terminated yet`) {
					t.Errorf("error is %v", err)
				}
				if err := c.Delete(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
				deployment := &appsv1.Deployment{}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: "cluster-autoscaler"}, deployment); err != nil || *deployment.Spec.Replicas != 0 {
					t.Errorf("it has %d pods, %v", *deployment.Spec.Replicas, err)
				}
			})
		})
	}
}

// Without an elastic pool, and of a shoot that is deleted, nothing is left of it, and nothing else is deleted.
func TestNothingIsLeft(t *testing.T) {
	for _, id := range []string{"stale-cluster-autoscaler", "cluster-autoscaler-gone"} {
		t.Run(id, func(t *testing.T) {
			deletions := 0
			c := seed(t, interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
					deletions++
					return c.Delete(ctx, object, options...)
				},
			})
			in := inputs(c)
			in.Desired = false
			tasks := append(Tasks(in), Deletion(in.Run))
			other, err := kubescheduler.Objects(kubescheduler.Values{Namespace: stagetest.Namespace})
			if err != nil {
				t.Fatal(err)
			}
			if err := in.Run.Apply(t.Context(), other...); err != nil {
				t.Fatal(err)
			}
			before := objects(t, c)
			if err := stagetest.RunTask(t.Context(), t, tasks, id); err != nil || deletions > 0 {
				t.Errorf("%d objects were deleted although there is no cluster-autoscaler, %v", deletions, err)
			}
			if err := in.apply(t.Context(), 1, nil); err != nil {
				t.Fatal(err)
			}
			if added := len(objects(t, c)) - len(before); added < 9 {
				t.Fatalf("a cluster-autoscaler has %d objects", added)
			}
			for range 2 {
				if err := stagetest.RunTask(t.Context(), t, tasks, id); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, objects(t, c)); diff != "" {
					t.Errorf("objects (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// The cluster-autoscaler was killed while it drained a node, and no pool is elastic any more: the node gets pods again. One that a webhook protects keeps its
// taint, and the shoot is reconciled nevertheless. For nodes that go, none is asked.
func TestNodesGetPodsAgain(t *testing.T) {
	const drained, candidate, own = "ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "example.com/own"
	node := func(name string, taints ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, key := range taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
		return n
	}
	for name, tc := range map[string]struct {
		hibernates bool
		id         string
		want       map[string][]string
	}{
		"they stay":            {id: "stale-cluster-autoscaler", want: map[string][]string{"drained": {own}, "idle": nil, "protected": {drained}, "usual": {own}}},
		"the shoot hibernates": {hibernates: true, id: "stale-cluster-autoscaler"},
		"it is deleted":        {id: "cluster-autoscaler-gone"},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputs(seed(t, interceptor.Funcs{}))
			in.Desired, in.Hibernates = false, tc.hibernates
			conflict := true
			shoot := fake.NewClientBuilder().WithScheme(in.Run.SeedAPI.Scheme()).WithObjects(
				node("drained", drained, own), node("idle", candidate), node("protected", drained), node("usual", own),
			).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if tc.want == nil {
						t.Error("nodes are read")
					}
					return c.List(ctx, list, options...)
				},
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					if object.GetName() == "protected" {
						return errors.New("refused")
					}
					if conflict {
						conflict = false
						return apierrors.NewConflict(corev1.Resource("nodes"), object.GetName(), nil)
					}
					return c.Patch(ctx, object, patch, options...)
				},
			}).Build()
			in.Run.Target = stage.NewConnectedTarget(shoot, stagetest.Discover)
			if err := in.apply(t.Context(), 1, nil); err != nil {
				t.Fatal(err)
			}
			if err := stagetest.RunTask(t.Context(), t, append(Tasks(in), Deletion(in.Run)), tc.id); err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for name := range tc.want {
				n := &corev1.Node{}
				if err := shoot.Get(t.Context(), client.ObjectKey{Name: name}, n); err != nil {
					t.Fatal(err)
				}
				got[name] = nil
				for _, taint := range n.Spec.Taints {
					got[name] = append(got[name], taint.Key)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
		})
	}
}

// objects are those in the namespace, except for Secrets of ManagedResources, which gardener-resource-manager deletes.
func objects(t *testing.T, c client.Client) []string {
	t.Helper()
	vpas := &unstructured.UnstructuredList{}
	vpas.SetGroupVersionKind(workload.AutoscalerKind)
	var all []string
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &corev1.SecretList{}, &policyv1.PodDisruptionBudgetList{},
		&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &resourcesv1alpha1.ManagedResourceList{}, vpas,
	} {
		if err := c.List(t.Context(), list, client.InNamespace(stagetest.Namespace)); err != nil {
			t.Fatal(err)
		}
		if err := apimeta.EachListItem(list, func(item runtime.Object) error {
			if object := item.(client.Object); !strings.HasPrefix(object.GetName(), "managedresource-") { //nolint:forcetypeassert // all are
				all = append(all, fmt.Sprintf("%T %s", object, object.GetName()))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return all
}
