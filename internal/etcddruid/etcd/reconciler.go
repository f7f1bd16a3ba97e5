package etcd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	etcddruidconfigv1alpha1 "gardener.cloud/gardener/api/config/etcddruid/v1alpha1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

const (
	// fieldOwner owns what is applied.
	fieldOwner = "etcd-druid"
	// defaultHostPath is the directory on the node with the buckets of the provider Local, if the Secret has none.
	defaultHostPath = "/etc/gardener/local-backupbuckets"
	// hostPathKey is the key of the Secret with that directory.
	hostPathKey = "hostPath"
	// reportTimeout is how long the closing write of the status may take.
	reportTimeout = 5 * time.Second
)

// reconciler applies the objects of an Etcd, and reports their state in its status.
type reconciler struct {
	client client.Client
	// api reads objects that are not in the cache: Secrets, pods and their volumes, and a StatefulSet that has just been applied.
	api           client.Reader
	recorder      events.EventRecorder
	clock         clock.PassiveClock
	images        etcddruidconfigv1alpha1.Images
	autoReconcile bool
	thresholds    thresholds

	mutex sync.Mutex
	// applied has the objects that were applied last for each Etcd. Applying takes some fifteen requests, which are not needed if neither
	// the spec nor the objects changed.
	applied map[types.UID]applied
}

// applied identifies the objects of an Etcd as they were applied last.
type applied struct {
	state string
	// generation is that of the StatefulSet afterwards. An older one in the cache would show all members as updated.
	generation int64
}

// scope is the observed state and the decisions of a pass.
type scope struct {
	etcd, before *druidv1alpha1.Etcd
	statefulSet  *appsv1.StatefulSet // nil if there is none
	leases       []coordinationv1.Lease
	// began is set when the pass acts on a spec that was not acted on before.
	began bool
	// acted is set when all objects are applied.
	acted bool
	// moving says which member moves to another zone, for users. It is empty if none does.
	moving string
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (res reconcile.Result, err error) {
	etcd := &druidv1alpha1.Etcd{}
	if err := r.client.Get(ctx, req.NamespacedName, etcd); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{etcd: etcd, before: etcd.DeepCopy()}
	if etcd.DeletionTimestamp != nil {
		return reconcile.Result{}, r.delete(ctx, s)
	}
	if controllerutil.AddFinalizer(etcd, druidv1alpha1.EtcdFinalizerName) {
		if err := r.client.Patch(ctx, etcd, client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, fmt.Errorf("add finalizer: %w", err)
		}
		s.before = etcd.DeepCopy()
	}
	defer func() {
		recheck, reportErr := r.report(ctx, s, err)
		res.RequeueAfter = recheck
		var unsupported *unsupportedError
		if errors.As(err, &unsupported) { // only a change of the spec helps, and the error is in the status
			err = reconcile.TerminalError(err)
		}
		if err = kube.Reported(err, reportErr); err != nil {
			res = reconcile.Result{}
		}
	}()
	if err := r.observe(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	if mayActOnSpec(etcd, r.autoReconcile) && mayApply(etcd) {
		return reconcile.Result{}, r.act(ctx, s)
	}
	return reconcile.Result{}, nil
}

func (r *reconciler) observe(ctx context.Context, s *scope) error {
	statefulSet, key := &appsv1.StatefulSet{}, client.ObjectKeyFromObject(s.etcd)
	err := r.client.Get(ctx, key, statefulSet)
	if client.IgnoreNotFound(err) == nil && statefulSet.Generation < r.lastApplied(s.etcd).generation {
		err = r.api.Get(ctx, key, statefulSet)
	}
	switch {
	case err == nil:
		s.statefulSet = statefulSet
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read StatefulSet: %w", err)
	}
	leases := &coordinationv1.LeaseList{}
	if err := r.client.List(ctx, leases, client.InNamespace(s.etcd.Namespace), client.MatchingLabels(labels(s.etcd.Name))); err != nil {
		return fmt.Errorf("list Leases: %w", err)
	}
	s.leases = leases.Items
	return nil
}

// act applies the objects of the spec.
func (r *reconciler) act(ctx context.Context, s *scope) error {
	etcd := s.etcd
	if !seen(etcd) || operation(etcd) != "" {
		s.began = true
		if err := r.begin(ctx, s); err != nil {
			return err
		}
	}
	if err := supported(etcd); err != nil {
		return err
	}
	values := renderValues{
		Etcd: etcd, Replicas: replicas(etcd, s.statefulSet, s.leases), EtcdImage: r.images.Etcd, BackupRestoreImage: r.images.BackupRestore,
	}
	var err error
	if values.HostPath, err = r.hostPath(ctx, etcd); err != nil {
		return err
	}
	desired, err := objects(values)
	if err != nil {
		return err
	}
	if err := maySpread(s.statefulSet, desired); err != nil {
		return err
	}
	if err := r.apply(ctx, s, desired); err != nil {
		return err
	}
	// Otherwise further members are added in a later pass.
	if s.acted = values.Replicas == etcd.Spec.Replicas; !s.acted {
		return nil
	}
	return r.move(ctx, s)
}

// begin reports the begin in the status, then removes the operation annotation. If the pass fails in between, the status still shows that the
// operation has to be continued.
func (r *reconciler) begin(ctx context.Context, s *scope) error {
	if err := r.reportBegin(ctx, s); err != nil {
		return err
	}
	if operation(s.etcd) == "" {
		return nil
	}
	before := s.etcd.DeepCopy()
	delete(s.etcd.Annotations, druidv1alpha1.DruidOperationAnnotation)
	delete(s.etcd.Annotations, druidv1alpha1.GardenerOperationAnnotation)
	// The response has the current status, which the next write starts from.
	if err := r.client.Patch(ctx, s.etcd, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("remove operation annotation: %w", err)
	}
	s.before = s.etcd.DeepCopy()
	return nil
}

// apply applies the objects, if they or the rendered ones differ from the last time.
func (r *reconciler) apply(ctx context.Context, s *scope, desired []client.Object) error {
	for _, object := range desired {
		if statefulSet, ok := object.(*appsv1.StatefulSet); ok && s.statefulSet != nil {
			if err := r.growVolumes(ctx, s, statefulSet); err != nil {
				return err
			}
		}
	}
	state, err := r.state(ctx, desired)
	if err != nil {
		return err
	}
	if r.lastApplied(s.etcd).state == state && !s.began {
		return nil
	}
	log.FromContext(ctx).Info("Applying objects", "generation", s.etcd.Generation)
	if err := kube.Apply(ctx, r.client, fieldOwner, desired...); err != nil {
		return err
	}
	// The conditions are about the StatefulSet after the change.
	statefulSet := &appsv1.StatefulSet{}
	if err := r.api.Get(ctx, client.ObjectKeyFromObject(s.etcd), statefulSet); err != nil {
		return fmt.Errorf("read StatefulSet: %w", err)
	}
	s.statefulSet = statefulSet
	r.mutex.Lock()
	r.applied[s.etcd.UID] = applied{state: state, generation: statefulSet.Generation}
	r.mutex.Unlock()
	return nil
}

func (r *reconciler) lastApplied(etcd *druidv1alpha1.Etcd) applied {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.applied[etcd.UID]
}

// state is a hash of the rendered objects, and of the versions of the current ones. The generation stands for the version of an object that
// has one, so that changes of its status do not count. Leases do not count, as the members write them.
func (r *reconciler) state(ctx context.Context, desired []client.Object) (string, error) {
	hash := sha256.New()
	for _, object := range desired {
		content, err := json.Marshal(object)
		if err != nil {
			return "", err
		}
		hash.Write(content)
		current, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			continue
		}
		switch err := r.client.Get(ctx, client.ObjectKeyFromObject(object), current); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return "", err
		}
		version := current.GetResourceVersion()
		if _, lease := object.(*coordinationv1.Lease); lease {
			version = ""
		} else if generation := current.GetGeneration(); generation != 0 {
			version = fmt.Sprint("generation", generation)
		}
		fmt.Fprintln(hash, current.GetUID(), version)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// growVolumes enlarges PersistentVolumeClaims to the size in the spec. The claim template of a StatefulSet is immutable, so the current one is
// kept.
func (r *reconciler) growVolumes(ctx context.Context, s *scope, desired *appsv1.StatefulSet) error {
	desiredSize := desired.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage]
	desired.Spec.VolumeClaimTemplates = s.statefulSet.Spec.VolumeClaimTemplates
	for i := range desired.Spec.VolumeClaimTemplates {
		desired.Spec.VolumeClaimTemplates[i].Status = corev1.PersistentVolumeClaimStatus{}
	}
	if !s.began {
		return nil
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.api.List(ctx, claims, client.InNamespace(s.etcd.Namespace), client.MatchingLabels(podLabels(s.etcd.Name))); err != nil {
		return fmt.Errorf("list PersistentVolumeClaims: %w", err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.Cmp(desiredSize) >= 0 {
			continue
		}
		before := claim.DeepCopy()
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = desiredSize
		if err := r.client.Patch(ctx, claim, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("enlarge PersistentVolumeClaim %q: %w", claim.Name, err)
		}
	}
	return nil
}

// hostPath returns the directory on the node with the buckets, if the store is of the provider Local.
func (r *reconciler) hostPath(ctx context.Context, etcd *druidv1alpha1.Etcd) (string, error) {
	store := etcd.Spec.Backup.Store
	if store == nil || !IsLocal(store) {
		return "", nil
	}
	return HostPath(ctx, r.api, etcd.Namespace, store)
}

// HostPath returns the directory on the node with the buckets of a store of the provider Local.
func HostPath(ctx context.Context, reader client.Reader, namespace string, store *druidv1alpha1.StoreSpec) (string, error) {
	if store.SecretRef == nil {
		return defaultHostPath, nil
	}
	secret := &corev1.Secret{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: store.SecretRef.Name}, secret); err != nil {
		return "", fmt.Errorf("read Secret %q of the store: %w", store.SecretRef.Name, err)
	}
	if hostPath := strings.TrimSpace(string(secret.Data[hostPathKey])); hostPath != "" {
		return path.Clean(hostPath), nil
	}
	return defaultHostPath, nil
}

// delete deletes the objects: first the pods, which may still write backups, then the objects that pods need. Volumes are kept, as they belong
// to the owner of the Etcd.
func (r *reconciler) delete(ctx context.Context, s *scope) error {
	etcd := s.etcd
	if !controllerutil.ContainsFinalizer(etcd, druidv1alpha1.EtcdFinalizerName) {
		return nil
	}
	if err := r.reportBegin(ctx, s); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Deleting objects")
	all := []client.DeleteAllOfOption{client.InNamespace(etcd.Namespace), client.MatchingLabels(labels(etcd.Name))}
	statefulSet := &appsv1.StatefulSet{}
	statefulSet.Namespace, statefulSet.Name = etcd.Namespace, etcd.Name
	if err := r.client.Delete(ctx, statefulSet, client.PropagationPolicy("Background")); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete StatefulSet: %w", err)
	}
	pods := &corev1.PodList{}
	if err := r.api.List(ctx, pods, client.InNamespace(etcd.Namespace), client.MatchingLabels(podLabels(etcd.Name)), client.Limit(1)); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	if len(pods.Items) > 0 {
		return nil // the end of a pod requeues the Etcd
	}
	for _, kind := range append(owned(), &coordinationv1.Lease{}) {
		if err := r.client.DeleteAllOf(ctx, kind, all...); err != nil {
			return fmt.Errorf("delete objects of type %T: %w", kind, err)
		}
	}
	r.mutex.Lock()
	delete(r.applied, etcd.UID)
	r.mutex.Unlock()
	before := etcd.DeepCopy()
	controllerutil.RemoveFinalizer(etcd, druidv1alpha1.EtcdFinalizerName)
	if err := r.client.Patch(ctx, etcd, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}
