package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/cloudprofile"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
)

// bastions reconciles Bastions: a pod with an SSH server beside the machines, in their cluster, and a load balancer in front of it. The pod runs the user
// data of the Bastion, as machines of other providers do, so that it fits any gardenlet.
type bastions struct {
	*places
	clock clock.PassiveClock
}

// bastionRecheck is how often a bastion in another cluster is checked: its events do not arrive here, and a user waits for it.
const bastionRecheck = 2 * time.Second

// bastionLost is how long a pod may exist after the end of its grace period. Its kubelet deletes it within seconds.
const bastionLost = 30 * time.Second

// errNoInfrastructure is the error for a control plane without an Infrastructure that has said where its machines are.
var errNoInfrastructure = &extension.Wait{Reason: "The Shoot has no infrastructure yet", After: namespaceRecheck}

// bastionCluster is the cluster with the machines, and how to read from it without a cache.
type bastionCluster struct {
	client.Client
	reader client.Reader
	inSeed bool
}

// Reconcile applies the bastion, and reports its address when it accepts connections.
func (a *bastions) Reconcile(ctx context.Context, bastion *extensionsv1alpha1.Bastion, cluster *extension.Cluster) error {
	if cluster == nil || cluster.Seed == nil || cluster.CloudProfile == nil {
		return fmt.Errorf("there is no Cluster %q with a seed and a cloud profile", bastion.Namespace)
	}
	if err := noConfig(providerConfig, bastion.Spec.ProviderConfig); err != nil {
		return err
	}
	networks, err := sourceRanges(bastion.Spec.Ingress)
	if err != nil {
		return errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
	}
	image, err := bastionImage(cluster.CloudProfile, a.clock.Now())
	if err != nil {
		return errorcode.With(fmt.Errorf("CloudProfile %q: %w", cluster.CloudProfile.Name, err), corev1beta1.ErrorConfigurationProblem)
	}
	at, err := a.machines(ctx, bastion.Namespace)
	if err != nil {
		return err
	}
	namespace, name := localv1alpha1.InfrastructureNamespace(bastion.Namespace), bastionObject(bastion.Name)
	var from []string // load balancers hand connections on with the address of a node; if that is not known, only they limit who connects
	if nodes := cluster.Seed.Spec.Networks.Nodes; at.inSeed && nodes != nil {
		from = append(slices.Clone(networks), *nodes)
	}
	// The pod comes last: it never runs without the policy, nor beyond the quota of load balancers.
	err = kube.Apply(ctx, at, Name,
		BastionPolicy(namespace, name, from), bastionService(namespace, name, networks), bastionSecret(namespace, name, bastion.Spec.UserData))
	if err != nil {
		return err
	}
	if err := at.ensurePod(ctx, bastionPod(namespace, name, image), a.clock.Now()); err != nil {
		return err
	}
	service := &corev1.Service{}
	if err := at.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service); err != nil {
		return fmt.Errorf("read Service %q: %w", name, err)
	}
	if len(service.Status.LoadBalancer.Ingress) == 0 {
		return at.wait("The load balancer of the bastion has no address yet")
	}
	address := service.Status.LoadBalancer.Ingress[0]
	bastion.Status.Ingress = &corev1.LoadBalancerIngress{IP: address.IP, Hostname: address.Hostname}
	return nil
}

// machines returns the cluster with the machines of a control plane.
func (p *places) machines(ctx context.Context, controlPlane string) (*bastionCluster, error) {
	infrastructure, state, err := p.infrastructure(ctx, controlPlane)
	if err != nil {
		return nil, err
	}
	if infrastructure == nil || state.Place == nil {
		return nil, errNoInfrastructure
	}
	other, err := p.other(ctx, infrastructure)
	if err != nil {
		return nil, err
	}
	if other != nil {
		return &bastionCluster{Client: other, reader: other}, nil
	}
	return p.seed(), nil
}

func (p *places) seed() *bastionCluster {
	return &bastionCluster{Client: p.client, reader: p.reader, inSeed: true}
}

// wait returns the error of a bastion that is not ready. Events of the seed requeue it, those of another cluster do not arrive here.
func (c *bastionCluster) wait(reason string) error {
	wait := &extension.Wait{Reason: reason}
	if !c.inSeed {
		wait.After = bastionRecheck
	}
	return wait
}

// Repair says whether the pod of a bastion is lost, or does not accept connections, as when its node does not report any more. Only the seed reports it.
func (a *bastions) Repair(ctx context.Context, bastion *extensionsv1alpha1.Bastion) (bool, error) {
	at, err := a.machines(ctx, bastion.Namespace)
	if err != nil || !at.inSeed {
		return false, nil //nolint:nilerr // it is reported when the bastion is reconciled
	}
	pod, key := &corev1.Pod{}, client.ObjectKey{Namespace: localv1alpha1.InfrastructureNamespace(bastion.Namespace), Name: bastionObject(bastion.Name)}
	if err := a.client.Get(ctx, key, pod); apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("read Pod %q: %w", key.Name, err)
	}
	return pod.DeletionTimestamp != nil || !isReady(pod), nil
}

// ensurePod creates the pod, and waits until it accepts connections. One that exists stays as it is, unless it has ended, as when its node was shut down, or
// is not deleted in time, as when its node is lost.
func (c *bastionCluster) ensurePod(ctx context.Context, pod *corev1.Pod, now time.Time) error {
	current := &corev1.Pod{}
	err := c.reader.Get(ctx, client.ObjectKeyFromObject(pod), current)
	switch {
	case apierrors.IsNotFound(err):
		if err := c.Create(ctx, pod); err != nil {
			return fmt.Errorf("create Pod %q: %w", pod.Name, err)
		}
		return c.wait("The bastion is starting")
	case err != nil:
		return fmt.Errorf("read Pod %q: %w", pod.Name, err)
	case current.DeletionTimestamp != nil:
		return c.awaitEnd(ctx, current, now, "A former pod of the bastion is being deleted")
	case current.Status.Phase == corev1.PodFailed || current.Status.Phase == corev1.PodSucceeded:
		if err := remove(ctx, c, current); err != nil {
			return err
		}
		return c.wait("The pod of the bastion has ended, and is replaced")
	case !isReady(current) && slices.ContainsFunc(current.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Ready }):
		return c.wait(fmt.Sprintf("Node %q of the bastion does not report any more", current.Spec.NodeName))
	case !isReady(current):
		return c.wait("The bastion is starting" + problem(current))
	}
	return nil
}

// awaitEnd waits for the end of a pod that is being deleted. That of a lost node is not deleted otherwise; it has no data, so that it may still run.
func (c *bastionCluster) awaitEnd(ctx context.Context, pod *corev1.Pod, now time.Time, reason string) error {
	if left := pod.DeletionTimestamp.Add(bastionLost).Sub(now); left > 0 {
		if !c.inSeed {
			left = min(left, bastionRecheck)
		}
		return &extension.Wait{Reason: reason, After: left}
	}
	if err := c.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Pod %q, whose node is lost: %w", pod.Name, err)
	}
	return &extension.Wait{Reason: fmt.Sprintf("Node %q of the bastion is lost, and its pod is deleted", pod.Spec.NodeName), After: bastionRecheck}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// problem returns what keeps a pod from becoming ready, if that is known. It is only the reason: texts would be others each time.
func problem(pod *corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := status.State.Waiting; waiting != nil && !slices.Contains([]string{"", "PodInitializing", "ContainerCreating"}, waiting.Reason) {
			return fmt.Sprintf(": container %q: %s", status.Name, waiting.Reason)
		}
	}
	return ""
}

// Delete deletes the bastion, and returns nil when it is gone.
func (a *bastions) Delete(ctx context.Context, bastion *extensionsv1alpha1.Bastion, _ *extension.Cluster) error {
	at, err := a.locate(ctx, bastion.Namespace)
	if err != nil {
		return err
	}
	return at.delete(ctx, bastion, a.clock.Now())
}

// ForceDelete does not wait for another cluster, which may not exist any more.
func (a *bastions) ForceDelete(ctx context.Context, bastion *extensionsv1alpha1.Bastion, _ *extension.Cluster) error {
	at, err := a.locate(ctx, bastion.Namespace)
	if err == nil {
		err = at.delete(ctx, bastion, a.clock.Now())
	}
	if err != nil && (at == nil || !at.inSeed) {
		logf.FromContext(ctx).Info("Not waiting for the deletion of a bastion in another cluster", "result", err.Error())
		return nil
	}
	return err
}

// locate returns the cluster in which a bastion may be. Without an infrastructure, there is none in another one.
func (a *bastions) locate(ctx context.Context, controlPlane string) (*bastionCluster, error) {
	at, err := a.machines(ctx, controlPlane)
	if errors.Is(err, errNoInfrastructure) {
		return a.seed(), nil
	}
	return at, err
}

// delete deletes the objects of a bastion: the address first, and the policy when the pod has ended.
func (c *bastionCluster) delete(ctx context.Context, bastion *extensionsv1alpha1.Bastion, now time.Time) error {
	meta := metav1.ObjectMeta{Namespace: localv1alpha1.InfrastructureNamespace(bastion.Namespace), Name: bastionObject(bastion.Name)}
	pod := &corev1.Pod{ObjectMeta: meta}
	objects := []client.Object{&corev1.Service{ObjectMeta: meta}, pod}
	if err := remove(ctx, c, objects...); err != nil {
		return err
	}
	for _, object := range objects {
		err := c.reader.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil && object == pod && pod.DeletionTimestamp != nil {
			return c.awaitEnd(ctx, pod, now, "The bastion is being deleted")
		}
		if err == nil {
			return c.wait("The bastion is being deleted")
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("read %T %q: %w", object, meta.Name, err)
		}
	}
	return remove(ctx, c, &corev1.Secret{ObjectMeta: meta}, &networkingv1.NetworkPolicy{ObjectMeta: meta})
}

// watchBastions requeues Bastions when their pods or Services in the seed change. The cache has no others, see Component.
func watchBastions(b *builder.Builder, toObjects handler.MapFunc) {
	b.Watches(&corev1.Pod{}, ofControlPlane(toObjects)).Watches(&corev1.Service{}, ofControlPlane(toObjects))
}

// ofControlPlane requeues the objects of a control plane when something beside its machines changes.
func ofControlPlane(toObjects handler.MapFunc) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		controlPlane, ok := localv1alpha1.ControlPlaneOf(object.GetNamespace())
		if !ok {
			return nil
		}
		return toObjects(ctx, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: controlPlane}})
	})
}

// bastionImage returns the image of bastions: that of the cloud profile's spec.bastion, or else of its first machine image. The version is the newest one if it
// is not named. Machine types do not matter.
func bastionImage(profile *corev1beta1.CloudProfile, now time.Time) (string, error) {
	config, err := profileConfig(profile)
	if err != nil {
		return "", err
	}
	var wanted corev1beta1.BastionMachineImage
	if bastion := profile.Spec.Bastion; bastion != nil && bastion.MachineImage != nil {
		wanted = *bastion.MachineImage
	}
	for i := range profile.Spec.MachineImages {
		image := &profile.Spec.MachineImages[i]
		if wanted.Name != "" && image.Name != wanted.Name {
			continue
		}
		version := ptr.Deref(wanted.Version, "")
		if version == "" {
			version = cloudprofile.Newest(cloudprofile.ImageVersions(image), now, func(i int, _ *semver.Version) bool {
				return imageIn(&profile.Spec, config, image.Name, image.Versions[i].Version, "", defaultArchitecture) != nil
			})
		}
		if found := imageIn(&profile.Spec, config, image.Name, version, "", defaultArchitecture); found != nil {
			return found.Image, nil
		}
	}
	return "", errors.New("it has no machine image for bastions: spec.providerConfig.machineImages has to have a supported one")
}

// profileConfig returns the configuration of this provider in a cloud profile.
func profileConfig(profile *corev1beta1.CloudProfile) (*localv1alpha1.CloudProfileConfig, error) {
	return configOf(profile.Spec.ProviderConfig)
}

// configOf decodes such a configuration. It is empty if there is none.
func configOf(raw *runtime.RawExtension) (*localv1alpha1.CloudProfileConfig, error) {
	config := &localv1alpha1.CloudProfileConfig{}
	if raw != nil && len(raw.Raw) > 0 {
		if err := json.Unmarshal(raw.Raw, config); err != nil {
			return nil, errors.New("the configuration is not valid") // the text of the error may quote it
		}
	}
	return config, nil
}
