package operatingsystemconfig

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
)

const (
	// passTimeout limits a pass, which may pull images and restart units.
	passTimeout = 30 * time.Minute
	// probeAgain is the period in which a registry mirror that was not ready is probed.
	probeAgain = 30 * time.Second
)

// reconciler applies the operating system config.
type reconciler struct {
	Values

	// seen is when a configuration whose application is delayed was first observed.
	seen struct {
		checksum string
		at       time.Time
	}
	// update is the state of an update in place.
	update update
	// outdated is whether this process's own binary, unit or configuration changed since it started.
	outdated bool
}

func mapTo(request reconcile.Request) handler.MapFunc {
	return func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{request} }
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	log := logf.FromContext(ctx)
	secret := &corev1.Secret{}
	if err := r.Client.Get(ctx, request.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	osc, checksum, err := decode(secret)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err) // only another Secret helps
	}
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: r.Hostname}, node); apierrors.IsNotFound(err) {
		node = nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("read Node %q: %w", r.Hostname, err)
	}
	before, checksumBefore, err := LastApplied(r.Root)
	if err != nil {
		return reconcile.Result{}, err
	}
	begun, err := r.begun()
	if err != nil {
		return reconcile.Result{}, err
	}
	raw := secret.Data[nodeagentconfigv1alpha1.DataKeyOperatingSystemConfig]
	pending, err := changesOf(before, osc, r.Hostname)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	if before == nil && osc.Spec.InPlaceUpdates != nil && node != nil && mayUpdate(node) {
		// Its first configuration, or the record of that was lost: what the Node was drained for is not known to be done.
		pending = changes{cas: true, serviceAccountKey: true, operatingSystem: true}
	}
	// A Node that is missing is not drained: its pods may run, and the kubelet creates it again.
	if pending.any() && (node == nil || !mayUpdate(node)) {
		log.Info("Waiting until the node is ready for its update", "changes", fmt.Sprintf("%+v", pending), "nodeExists", node != nil)
		return reconcile.Result{}, nil // the creation of the Node and the change of its condition requeue it
	}
	// A configuration that was begun is not delayed again: the machine may be in a state between two. Nor is one for which the node was drained.
	if node != nil && !pending.any() && checksumBefore != checksum && !slices.Contains(begun, document(raw)) {
		if r.seen.checksum != checksum {
			r.seen.checksum, r.seen.at = checksum, r.Clock.Now()
		}
		if wait := waitFor(before == nil, node.Annotations[constants.NodeAgentReconciliationDelay], r.seen.at, r.Clock.Now()); wait > 0 {
			log.Info("Waiting before the new configuration is applied", "delay", wait)
			return reconcile.Result{RequeueAfter: wait}, nil
		}
	}
	done, err := r.apply(ctx, applying{osc: osc, before: before, raw: raw, changes: pending, node: node})
	if err != nil {
		if pending.any() {
			err = r.updateFailed(ctx, node, err)
		}
		if node != nil {
			r.Recorder.Eventf(node, nil, corev1.EventTypeWarning, "OSCNotApplied", "Apply", "%s", short(err))
		}
		return reconcile.Result{}, fmt.Errorf("apply operating system config: %w", err)
	}
	if done.self { // the next process reports: it has the Kubernetes version of the new configuration
		log.Info("Restarting this process")
		return reconcile.Result{}, r.Systemd.RestartWithoutWaiting(ctx, nodeagentconfigv1alpha1.UnitName)
	}
	if err := r.report(ctx, node, osc, checksum); err != nil {
		return kube.Result(err)
	}
	if wait, err := r.finishUpdate(ctx, node); wait > 0 || err != nil {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	if len(done.unready) > 0 {
		return reconcile.Result{RequeueAfter: probeAgain}, nil
	}
	return reconcile.Result{RequeueAfter: r.SyncPeriod}, nil
}

// report annotates the Node, if there is one, with what was applied. As the kubelet has a certificate then, its token is removed.
func (r *reconciler) report(ctx context.Context, node *corev1.Node, osc *extensionsv1alpha1.OperatingSystemConfig, checksum string) error {
	if node == nil {
		return nil
	}
	const key = nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig
	reported := node.Annotations[key] == checksum
	err := kube.PatchMetadata(ctx, r.Client, node, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, key, checksum)
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.WorkerKubernetesVersion, r.KubernetesVersion)
		metav1.SetMetaDataLabel(&o.ObjectMeta, constants.WorkerKubernetesVersion, r.KubernetesVersion)
	})
	if err != nil {
		return fmt.Errorf("annotate Node %q: %w", node.Name, err)
	}
	if !reported {
		r.Recorder.Eventf(node, nil, corev1.EventTypeNormal, "OSCApplied", "Apply", "Operating system config has been applied successfully")
		if runtime := node.Status.NodeInfo.ContainerRuntimeVersion; hasContainerd(osc) && strings.HasPrefix(runtime, "containerd://1.") {
			r.Recorder.Eventf(node, nil, corev1.EventTypeWarning, "ContainerdTooOld", "Apply",
				"%s ignores its configuration, which is for version 2 or later", runtime)
		}
	}
	return r.TidyKubelet()
}

// LastApplied returns the configuration that was applied to a machine last, nil on a new one, and its checksum.
func LastApplied(root rootfs.Dir) (*extensionsv1alpha1.OperatingSystemConfig, string, error) {
	data, err := root.Read(nodeagentconfigv1alpha1.LastAppliedOperatingSystemConfigFilePath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := yaml.Unmarshal(data, osc); err != nil {
		return nil, "", fmt.Errorf("read %s: %w", nodeagentconfigv1alpha1.LastAppliedOperatingSystemConfigFilePath, err)
	}
	return osc, checksumOf(data), nil
}

// decode reads the configuration in a Secret. The checksum is that of the content, as the gardenlet writes it on the Secret too.
func decode(secret *corev1.Secret) (*extensionsv1alpha1.OperatingSystemConfig, string, error) {
	data := secret.Data[nodeagentconfigv1alpha1.DataKeyOperatingSystemConfig]
	if len(data) == 0 {
		return nil, "", fmt.Errorf("key %s of Secret %q is missing", nodeagentconfigv1alpha1.DataKeyOperatingSystemConfig, secret.Name)
	}
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := yaml.Unmarshal(data, osc); err != nil {
		return nil, "", fmt.Errorf("read %s of Secret %q: %w", nodeagentconfigv1alpha1.DataKeyOperatingSystemConfig, secret.Name, err)
	}
	return osc, checksumOf(data), nil
}

func checksumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// short is the beginning of an error, as the note of an event is limited.
func short(err error) string {
	const most = 500
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
