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
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/nodeagent/imagefile"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
	"gardener.cloud/gardener/internal/nodeagent/systemd"
)

const (
	// passTimeout limits a pass, which may get images and restart units.
	passTimeout = 30 * time.Minute
	// probeAgain is when a registry mirror that was not ready is looked at again.
	probeAgain = 30 * time.Second
)

// Systemd is what the controller needs of systemd.
type Systemd interface {
	Reload(ctx context.Context) error
	Enable(ctx context.Context, unit string) error
	Disable(ctx context.Context, unit string) error
	Restart(ctx context.Context, unit string) error
	RestartWithoutWaiting(ctx context.Context, unit string) error
	Stop(ctx context.Context, unit string) error
	State(ctx context.Context, unit string) (systemd.State, error)
}

// Reconciler applies the operating system config.
type Reconciler struct {
	// Client is for the cluster whose Node this machine is.
	Client client.Client
	// Recorder writes events about the Node.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.Clock
	// Root and Systemd are the machine.
	Root    rootfs.Dir
	Systemd Systemd
	// Hostname is the name of the machine and its Node.
	Hostname string
	// SecretName is the name of the Secret with the configuration.
	SecretName string
	// KubernetesVersion is that of the kubelet in the configuration.
	KubernetesVersion string
	// SyncPeriod is how often the machine is compared with the configuration.
	SyncPeriod time.Duration
	// PrepareKubelet writes what a kubelet needs to start for the first time, and TidyKubelet removes it when it is needed no more.
	PrepareKubelet, TidyKubelet func() error
	// Extract gets files out of an image.
	Extract func(ctx context.Context, root rootfs.Dir, image string, files []imagefile.File) error
	// Probe asks a mirror of a registry whether it is ready.
	Probe func(ctx context.Context, root rootfs.Dir, registry string, mirror extensionsv1alpha1.RegistryHost) error

	// seen is when a configuration that is to be applied later was seen first.
	seen struct {
		checksum string
		at       time.Time
	}
	// outdated is whether this process's own binary, unit or configuration changed since it started.
	outdated bool
}

func mapTo(request reconcile.Request) handler.MapFunc {
	return func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{request} }
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
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
	// What was begun does not wait again: the machine may be half of each.
	if node != nil && checksumBefore != checksum && !slices.Contains(begun, document(raw)) {
		if r.seen.checksum != checksum {
			r.seen.checksum, r.seen.at = checksum, r.Clock.Now()
		}
		if wait := waitFor(before == nil, node.Annotations[constants.NodeAgentReconciliationDelay], r.seen.at, r.Clock.Now()); wait > 0 {
			log.Info("Waiting before the new configuration is applied", "delay", wait)
			return reconcile.Result{RequeueAfter: wait}, nil
		}
	}
	done, err := r.apply(ctx, osc, before, raw)
	if err != nil {
		if node != nil {
			r.Recorder.Eventf(node, nil, corev1.EventTypeWarning, "OSCNotApplied", "Apply", "%s", short(err))
		}
		return reconcile.Result{}, fmt.Errorf("apply operating system config: %w", err)
	}
	if done.self { // and the one that comes reports: what it is configured with is what the Node is to be told
		log.Info("Restarting this process")
		return reconcile.Result{}, r.Systemd.RestartWithoutWaiting(ctx, nodeagentconfigv1alpha1.UnitName)
	}
	if err := r.report(ctx, node, checksum); err != nil {
		return kube.Result(err)
	}
	if len(done.unready) > 0 {
		return reconcile.Result{RequeueAfter: probeAgain}, nil
	}
	return reconcile.Result{RequeueAfter: r.SyncPeriod}, nil
}

// report tells the Node what was applied, once there is a Node, after which the kubelet needs no token any more.
func (r *Reconciler) report(ctx context.Context, node *corev1.Node, checksum string) error {
	if node == nil {
		return nil
	}
	const key = nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig
	told := node.Annotations[key] == checksum
	err := kube.PatchMetadata(ctx, r.Client, node, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, key, checksum)
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.WorkerKubernetesVersion, r.KubernetesVersion)
		metav1.SetMetaDataLabel(&o.ObjectMeta, constants.WorkerKubernetesVersion, r.KubernetesVersion)
	})
	if err != nil {
		return fmt.Errorf("annotate Node %q: %w", node.Name, err)
	}
	if !told {
		r.Recorder.Eventf(node, nil, corev1.EventTypeNormal, "OSCApplied", "Apply", "Operating system config has been applied successfully")
	}
	return r.TidyKubelet()
}

// LastApplied returns what was applied to a machine last, nil on a new one, and its checksum.
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
		return nil, "", fmt.Errorf("read what was applied last: %w", err)
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

// short is as much of an error as an event has room for.
func short(err error) string {
	const most = 500
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
