package health

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/internal/kube"
)

const (
	// followTimeout limits how long old pods are watched. They may have a long grace period; the next reconciliation checks again.
	followTimeout = 10 * time.Minute
	// waiting is how many Deployments may be queued to be followed.
	waiting = 100
	// revisionAnnotation has the number of the rollout, on a Deployment and on its ReplicaSets.
	revisionAnnotation = "deployment.kubernetes.io/revision"
)

// oldPods finds pods of earlier revisions of Deployments that have not ended. There may be many Pods, so they are not
// cached: they are listed once per rollout, and if there are old ones, these are watched until they are gone.
type oldPods struct {
	live client.WithWatch

	mu sync.Mutex
	// settled are the generations of Deployments without old pods.
	settled map[types.NamespacedName]generation
	// followed are the Deployments whose pods are being watched.
	followed map[types.UID]bool
	requests chan follow
}

// follow requests a reconciliation when the old pods of a Deployment are gone.
type follow struct {
	uid     types.UID
	request reconcile.Request
	list    []client.ListOption
	hash    string
}

func newOldPods(live client.WithWatch) *oldPods {
	return &oldPods{live: live, settled: map[types.NamespacedName]generation{}, followed: map[types.UID]bool{}, requests: make(chan follow, waiting)}
}

// check returns what is left of earlier revisions of a Deployment that is rolled out otherwise, or nil.
func (o *oldPods) check(ctx context.Context, request reconcile.Request, d *appsv1.Deployment) (left, err error) {
	if terminating := d.Status.TerminatingReplicas; terminating != nil { // since Kubernetes 1.35
		if *terminating > 0 {
			return fmt.Errorf("%d pods are terminating", *terminating), nil
		}
		return nil, nil
	}
	o.mu.Lock()
	key, now := client.ObjectKeyFromObject(d), generation{string(d.UID), d.Generation}
	settled := o.settled[key] == now
	o.mu.Unlock()
	if settled {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, err
	}
	options := []client.ListOption{client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector}}
	hash, err := o.currentHash(ctx, d, options)
	if err != nil || hash == "" {
		return nil, err
	}
	options = append(options, client.MatchingFieldsSelector{Selector: fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)), fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	)})
	pods := metadataList("Pod", corev1.SchemeGroupVersion.String())
	if err := o.live.List(ctx, pods, options...); err != nil {
		return nil, err
	}
	count := 0
	for i := range pods.Items {
		if isOld(&pods.Items[i], hash) {
			count++
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if count == 0 {
		o.settled[key] = now
		return nil, nil
	}
	if !o.followed[d.UID] {
		select {
		case o.requests <- follow{d.UID, request, options, hash}:
			o.followed[d.UID] = true
		default: // the next reconciliation finds them again
		}
	}
	return fmt.Errorf("%d old pods are not gone", count), nil
}

// currentHash is the pod-template-hash of the current revision, or empty if it is unknown.
func (o *oldPods) currentHash(ctx context.Context, d *appsv1.Deployment, options []client.ListOption) (string, error) {
	sets := metadataList("ReplicaSet", appsv1.SchemeGroupVersion.String())
	if err := o.live.List(ctx, sets, options...); err != nil {
		return "", err
	}
	for i := range sets.Items {
		if set := &sets.Items[i]; metav1.IsControlledBy(set, d) && set.Annotations[revisionAnnotation] == d.Annotations[revisionAnnotation] {
			return set.Labels[appsv1.DefaultDeploymentUniqueLabelKey], nil
		}
	}
	return "", nil
}

// isOld says whether a pod is of an earlier revision. Pods with the same labels that no ReplicaSet created have no hash.
func isOld(pod *metav1.PartialObjectMetadata, hash string) bool {
	of, ok := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	return ok && of != hash
}

func metadataList(kind, apiVersion string) *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: kind + "List", APIVersion: apiVersion}}
}

// run follows what is asked for until the context ends.
func (o *oldPods) run(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	var following sync.WaitGroup
	defer following.Wait()
	for {
		select {
		case f := <-o.requests:
			following.Go(func() { o.follow(ctx, f, queue) })
		case <-ctx.Done():
			return
		}
	}
}

func (o *oldPods) follow(ctx context.Context, f follow, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	// Whether they are gone or the time is up, the next pass finds out.
	_ = kube.Await(ctx, o.live, metadataList("Pod", corev1.SchemeGroupVersion.String()), func(pods []*metav1.PartialObjectMetadata) error {
		for _, pod := range pods {
			if isOld(pod, f.hash) {
				return fmt.Errorf("pod %q is not gone", pod.Name)
			}
		}
		return nil
	}, nil, f.list...)
	o.mu.Lock()
	delete(o.followed, f.uid)
	o.mu.Unlock()
	queue.Add(f.request)
}
