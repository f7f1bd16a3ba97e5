package lifecycle

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/controlplanenamespace"
	"gardener.cloud/gardener/internal/component/usercopy"
	"gardener.cloud/gardener/internal/gardenlet/shoot/credentials"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// quick is the end of a task that only writes some objects.
	quick = 2 * time.Minute
	// podsTimeout is the end of a wait for pods. An image that is pulled for the first time takes a minute.
	podsTimeout = 5 * time.Minute
	// extensionTimeout is the end of a wait for an extension. Infrastructures take minutes.
	extensionTimeout = 10 * time.Minute
)

// again is how a task is tried again within a run: a webhook or a leader may be away for a moment.
var again = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Steps: 5, Jitter: 0.1}

// hosted is one run of a flow. What its tasks learn, they leave here for those that come after them.
type hosted struct {
	*reconciler
	*world

	set *credentials.Set
	// asleep is whether nothing of the control plane runs, and nothing has to.
	asleep bool

	mu          sync.Mutex
	shootClient client.WithWatch
	shootConfig *rest.Config
	served      []*metav1.APIResourceList
	infra       *extensionsv1alpha1.Infrastructure
	pools       []pool
}

// reconcileFlow composes what makes a control plane, or makes it be as it should.
func (r *reconciler) reconcileFlow(w *world) (*flow.Flow, error) {
	h := &hosted{reconciler: r, world: w, asleep: w.sleeps()}
	tasks := slices.Concat(h.foundation(), h.names(), h.storage(), h.apiServer())
	if !h.asleep {
		tasks = slices.Concat(tasks, h.controllers(), h.content(), h.reencryption())
	}
	if !w.workerless() {
		tasks = slices.Concat(tasks, h.infrastructure())
		if !h.asleep {
			tasks = slices.Concat(tasks, h.nodes())
		}
	}
	tasks = slices.Concat(tasks, h.extensionTasks(), h.orderedTasks())
	if w.hibernated() && !h.asleep {
		tasks = slices.Concat(tasks, h.sleep(tasks))
	}
	tasks = append(tasks, task("cleanup-credentials", "Deleting credentials that are no longer used", h.tidy, last(tasks)...))
	return compose("Shoot reconciliation", tasks)
}

func compose(name string, tasks []flow.Task) (*flow.Flow, error) {
	for i := range tasks {
		if tasks[i].Timeout == 0 {
			tasks[i].Timeout = quick
		}
		if tasks[i].Retry.Steps == 0 {
			tasks[i].Retry = again
		}
	}
	return flow.New(name, tasks...)
}

func task(id, title string, run func(context.Context) error, after ...string) flow.Task {
	return flow.Task{ID: id, Title: title, Run: run, After: after}
}

// lasting is a task that waits for others, and is not begun again before its end: the wait says what is missing.
func lasting(timeout time.Duration, t flow.Task) flow.Task {
	t.Timeout, t.Retry = timeout, wait.Backoff{Steps: 1}
	return t
}

// last are the tasks that no other one comes after: who comes after them comes after all.
func last(tasks []flow.Task) []string {
	followed := map[string]bool{}
	for _, t := range tasks {
		for _, id := range slices.Concat(t.After, t.AfterIfPresent) {
			followed[id] = true
		}
	}
	var list []string
	for _, t := range tasks {
		if !followed[t.ID] {
			list = append(list, t.ID)
		}
	}
	return list
}

// foundation is what everything else stands on.
func (h *hosted) foundation() []flow.Task {
	tasks := []flow.Task{
		task("namespace", "Creating the namespace of the control plane", h.createNamespace),
		h.introduction(),
		task("credentials-etcd", "Making credentials for etcd", h.makeEtcdCredentials, "namespace"),
		task("credentials", "Making credentials", h.makeCredentials, "credentials-etcd"),
		task("publish-credentials", "Publishing the authorities in the garden", func(ctx context.Context) error {
			return h.publish(ctx, h.world, h.set)
		}, "credentials"),
		task("announce-kubeconfig", "Telling extensions about the kubeconfig", h.announceKubeconfig, "credentials", "cluster"),
	}
	tasks = slices.Concat(tasks, h.references(), h.issuerTasks())
	if h.provider != nil {
		tasks = append(tasks, task("cloudprovider", "Copying credentials for the infrastructure", h.copyProviderCredentials, "namespace"))
	}
	return tasks
}

// introduction tells extensions about the cluster. Until they hear it, they may think that the shoot has failed or is to be ignored, and
// leave alone what is ordered from them.
func (h *hosted) introduction() flow.Task {
	cluster := task("cluster", "Telling extensions about the cluster", func(ctx context.Context) error { return h.syncCluster(ctx, h.world, h.shoot) })
	cluster.AfterIfPresent = []string{"references"} // what extensions are told about is there
	return cluster
}

func (h *hosted) createNamespace(ctx context.Context) error {
	types := make([]string, 0, len(h.extensions))
	for _, e := range h.extensions {
		types = append(types, e.typ)
	}
	return h.apply(ctx, controlplanenamespace.Object(controlplanenamespace.Values{
		Name: h.namespace, Project: h.project, Shoot: h.shoot, Seed: h.seed, Extensions: types, Zones: h.zones,
	}))
}

func (h *hosted) makeEtcdCredentials(ctx context.Context) (err error) {
	if h.set, err = credentials.Open(ctx, h.credentialValues()); err != nil {
		return err
	}
	return h.set.Etcd(ctx)
}

func (h *hosted) makeCredentials(ctx context.Context) error { return h.set.Rest(ctx) }

func (h *hosted) credentialValues() credentials.Values {
	v := credentials.Values{
		Client: h.SeedClient, Namespace: h.namespace, Status: h.shoot.Status.Credentials, Workers: !h.workerless(), SSHKey: h.shoot.Spec.Provider.SSHAccessEnabled(),
		HostNames: h.hosts(), TunnelHostName: h.tunnelHost(), Clock: h.Clock, Replicated: h.members() > 1,
	}
	if address, err := serviceAddress(h.shoot); err == nil && address != nil {
		v.Addresses = append(v.Addresses, address)
	}
	return v
}

// tidy deletes credentials and copies that were used until the last operation.
func (h *hosted) tidy(ctx context.Context) error {
	return errors.Join(h.set.Cleanup(ctx), h.dropReferences(ctx))
}

func (h *hosted) apply(ctx context.Context, objects ...client.Object) error {
	return kube.Apply(ctx, h.SeedClient, owner, slices.Concat(objects, h.autoscalers(objects))...)
}

// copyProviderCredentials copies what extensions reach the infrastructure with.
func (h *hosted) copyProviderCredentials(ctx context.Context) error {
	return h.copyCredential(ctx, *h.provider, usercopy.CloudProvider, map[string]string{purposeLabel: usercopy.CloudProvider})
}
