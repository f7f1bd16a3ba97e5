package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/landscape"
)

const (
	// mostNodes limits the nodes of a shoot. Each takes the memory of a machine.
	mostNodes = 2
	// inflightFlag is the flag of kube-apiserver for the field that alter changes.
	inflightFlag = "--max-requests-inflight="
)

// alter changes a setting of kube-apiserver, and the number of nodes of the first pool, if there is one.
func alter(spec *corev1beta1.ShootSpec, inflight, nodes int32) {
	server := spec.Kubernetes.KubeAPIServer
	if server == nil {
		server = &corev1beta1.KubeAPIServerConfig{}
		spec.Kubernetes.KubeAPIServer = server
	}
	if server.Requests == nil {
		server.Requests = &corev1beta1.APIServerRequests{}
	}
	server.Requests.MaxNonMutatingInflight = &inflight
	if workers := spec.Provider.Workers; len(workers) > 0 {
		workers[0].Minimum, workers[0].Maximum = nodes, max(nodes, workers[0].Maximum)
	}
}

// seedOf returns a client of the seed with the control plane of a shoot. Clusters of further seeds have their names.
func (u *users) seedOf(shoot *corev1beta1.Shoot) (client.Reader, error) {
	if name := ptr.Deref(shoot.Status.SeedName, ""); name != "local" { // the first seed is the runtime cluster
		return u.l.Client(name)
	}
	return u.seed, nil
}

// matchesSpec returns how a shoot with a healthy status differs from its spec. Deleted shoots are ignored.
func (u *users) matchesSpec(ctx context.Context, shoot *corev1beta1.Shoot) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	key := client.ObjectKeyFromObject(shoot)
	current := &corev1beta1.Shoot{}
	if err := u.garden.Get(ctx, key, current); err != nil {
		return client.IgnoreNotFound(err)
	}
	if current.DeletionTimestamp != nil {
		return nil
	}
	seed, err := u.seedOf(current)
	if err != nil {
		return fmt.Errorf("shoot %q: %w", key, err)
	}
	server := &appsv1.Deployment{}
	if err := seed.Get(ctx, client.ObjectKey{Namespace: current.Status.TechnicalID, Name: kubeapiserver.Name}, server); err != nil {
		return fmt.Errorf("shoot %q: %w", key, err)
	}
	if err := errors.Join(kube.DeploymentComplete(server), serverMatches(&current.Spec, server)); err != nil {
		return fmt.Errorf("shoot %q: %w", key, err)
	}
	if len(current.Spec.Provider.Workers) == 0 {
		return nil
	}
	shootClient, err := u.connect(ctx, key)
	if err != nil {
		return fmt.Errorf("shoot %q: %w", key, err)
	}
	// A node to remove may still be drained.
	if err := kube.Await(ctx, shootClient, &corev1.NodeList{}, func(nodes []*corev1.Node) error {
		return nodesMatch(current.Spec.Provider.Workers, nodes)
	}, nil); err != nil {
		return fmt.Errorf("shoot %q: %w", key, err)
	}
	return nil
}

func (u *users) connect(ctx context.Context, key client.ObjectKey) (client.WithWatch, error) {
	file, err := u.l.ShootKubeconfig(ctx, landscape.Access{Shoot: key, Expiration: time.Hour})
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{})
}

// serverMatches returns how kube-apiserver differs from the setting that alter has changed.
func serverMatches(spec *corev1beta1.ShootSpec, server *appsv1.Deployment) error {
	desired := spec.Kubernetes.KubeAPIServer
	if desired == nil || desired.Requests == nil || desired.Requests.MaxNonMutatingInflight == nil {
		return nil
	}
	want := fmt.Sprint(inflightFlag, *desired.Requests.MaxNonMutatingInflight)
	var flags []string
	for _, container := range server.Spec.Template.Spec.Containers {
		for _, arg := range slices.Concat(container.Command, container.Args) {
			if strings.HasPrefix(arg, inflightFlag) {
				flags = append(flags, arg)
			}
		}
	}
	if !slices.Equal(flags, []string{want}) {
		return fmt.Errorf("kube-apiserver has flags %q, want %s", flags, want)
	}
	return nil
}

// nodesMatch returns which pool does not have the desired number of nodes, or which node is not ready. The number is the minimum, as no
// workload here needs more.
func nodesMatch(workers []corev1beta1.Worker, nodes []*corev1.Node) error {
	pools := map[string]int32{}
	for _, node := range nodes {
		if err := kube.NodeReady(node); err != nil {
			return err
		}
		pools[node.Labels[constants.WorkerPool]]++
	}
	for _, worker := range workers {
		if got := pools[worker.Name]; got != worker.Minimum {
			return fmt.Errorf("pool %q has %d nodes, want %d", worker.Name, got, worker.Minimum)
		}
	}
	return nil
}
