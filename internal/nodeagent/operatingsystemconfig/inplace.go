package operatingsystemconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

const (
	// osRelease has the version of the operating system.
	osRelease = "/etc/os-release"
	// osUpdateFile has the update of the operating system that was begun, until its command fails for good or the update is done. It tells an agent that
	// ended meanwhile from a machine that has rebooted.
	osUpdateFile = nodeagentconfigv1alpha1.BaseDir + "/os-update.json"
	// bootID has another content after each boot.
	bootID = "/proc/sys/kernel/random/boot_id"
	// updateWithin is how long the agent may fail before it reports that an update has failed. It goes on trying.
	updateWithin = 10 * time.Minute
	// healthyWithin is how long a kubelet may take to become healthy, and checkAgain how often that is checked: it notifies of nothing.
	healthyWithin, checkAgain = 5 * time.Minute, 5 * time.Second
	// osUpdateWithin is how long the update of the operating system is tried again, unless the network is the reason.
	osUpdateWithin = 5 * time.Minute
)

// changes are those of a configuration that are only made on a Node that was drained for them.
type changes struct {
	kubeletVersion, kubeletSettings, cas, serviceAccountKey, operatingSystem bool
}

func (c changes) any() bool { return c != changes{} }

// changesOf compares two configurations. Only pools that are updated in place have such changes, and new machines have none.
func changesOf(before, after *extensionsv1alpha1.OperatingSystemConfig, hostname string) (changes, error) {
	if before == nil || before.Spec.InPlaceUpdates == nil || after.Spec.InPlaceUpdates == nil {
		return changes{}, nil
	}
	was, is := before.Spec.InPlaceUpdates, after.Spec.InPlaceUpdates
	older, err := semver.NewVersion(was.Kubelet)
	if err != nil {
		return changes{}, fmt.Errorf("version of the kubelet %q: %w", was.Kubelet, err)
	}
	newer, err := semver.NewVersion(is.Kubelet)
	if err != nil {
		return changes{}, fmt.Errorf("version of the kubelet %q: %w", is.Kubelet, err)
	}
	settingsBefore, err := kubeletSettings(before, hostname)
	if err != nil {
		return changes{}, err
	}
	settings, err := kubeletSettings(after, hostname)
	if err != nil {
		return changes{}, err
	}
	rotatedBefore, rotated := rotations(was), rotations(is)
	return changes{
		kubeletVersion:  older.Major() != newer.Major() || older.Minor() != newer.Minor(),
		kubeletSettings: !reflect.DeepEqual(settingsBefore, settings),
		cas:             !rotatedBefore.cas.Equal(rotated.cas), serviceAccountKey: !rotatedBefore.serviceAccountKey.Equal(rotated.serviceAccountKey),
		operatingSystem: was.OperatingSystemVersion != is.OperatingSystemVersion,
	}, nil
}

// rotated is when credentials were rotated, nil if they were not.
type rotated struct{ cas, serviceAccountKey *metav1.Time }

func rotations(updates *extensionsv1alpha1.InPlaceUpdates) rotated {
	var r rotated
	if c := updates.CredentialsRotation; c != nil {
		if c.CertificateAuthorities != nil {
			r.cas = c.CertificateAuthorities.LastInitiationTime
		}
		if c.ServiceAccountKey != nil {
			r.serviceAccountKey = c.ServiceAccountKey.LastInitiationTime
		}
	}
	return r
}

// settings are those of the kubelet that disturb pods when they change.
type settings struct {
	CPUManagerPolicy string            `json:"cpuManagerPolicy"`
	EvictionHard     map[string]string `json:"evictionHard"`
	KubeReserved     map[string]string `json:"kubeReserved"`
}

func kubeletSettings(osc *extensionsv1alpha1.OperatingSystemConfig, hostname string) (settings, error) {
	var s settings
	_, files := merge(osc, hostname)
	for _, file := range files {
		if file.Path != extensionsv1alpha1.OperatingSystemConfigFilePathKubeletConfig {
			continue
		}
		data, err := content(file)
		if err != nil {
			return s, err
		}
		if err := yaml.Unmarshal(data, &s); err != nil {
			return s, fmt.Errorf("read file %s: %w", file.Path, err)
		}
	}
	return s, nil
}

// updateReason is how far the machine-controller-manager is with the update of a Node.
func updateReason(node *corev1.Node) string {
	for _, c := range node.Status.Conditions {
		if c.Type == machinev1alpha1.NodeInPlaceUpdate {
			return c.Reason
		}
	}
	return ""
}

// mayUpdate reports whether a Node was drained for an update that has not succeeded yet.
func mayUpdate(node *corev1.Node) bool {
	reason := updateReason(node)
	return reason == machinev1alpha1.ReadyForUpdate || reason == machinev1alpha1.UpdateFailed || node.Labels[machinev1alpha1.NodeUpdateResult] == machinev1alpha1.NodeUpdateFailed
}

// update is the state of an update in place in this process.
type update struct {
	// failing and unhealthy are since when the agent and the kubelet fail, osSince since when the update of the operating system is tried. Zero means
	// not at all.
	failing, unhealthy, osSince time.Time
	// osRan is set if the command that updates the operating system has succeeded, after which the machine may reboot.
	osRan bool
}

// final is an error that ends an update.
type final struct{ error }

// updateInPlace does what needs more than files and units: it is called when these are as they should be, and again if it fails.
func (p *pass) updateInPlace(ctx context.Context) error {
	if p.changes.operatingSystem {
		if err := p.updateOperatingSystem(ctx); err != nil {
			return err
		}
	}
	if p.changes.serviceAccountKey {
		if err := p.SyncTokens(ctx); err != nil {
			return fmt.Errorf("write tokens that are signed by the new key: %w", err)
		}
	}
	if p.changes.cas {
		logf.FromContext(ctx).Info("Requesting certificates of the new CAs")
		if err := p.RenewCertificate(ctx); err != nil {
			return fmt.Errorf("request a certificate of the new CA: %w", err)
		}
		p.outdated = true // this process has the former certificate
		if err := p.RebootstrapKubelet(); err != nil {
			return fmt.Errorf("prepare the kubelet for a certificate of the new CA: %w", err)
		}
		return p.mark(extensionsv1alpha1.OperatingSystemConfigUnitNameKubeletService)
	}
	return nil
}

// number is a version in the name of an operating system.
var number = regexp.MustCompile(`\d+(\.\d+)*`)

// osVersion is the version of the operating system of the machine, empty if it has none.
func (r *reconciler) osVersion() (string, error) {
	data, err := r.Root.Read(osRelease)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return number.FindString(name), err
		}
	}
	return "", err
}

// osUpdate is an update of the operating system that was begun.
type osUpdate struct {
	// Version is the one that the machine is to get, and BootID that of the machine when it began.
	Version string `json:"version"`
	BootID  string `json:"bootID"`
}

// begunOSUpdate returns the update that was begun, the zero value if none was.
func (r *reconciler) begunOSUpdate() (begun osUpdate, err error) {
	data, err := r.Root.Read(osUpdateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return begun, nil
	}
	if err != nil {
		return begun, err
	}
	if err := json.Unmarshal(data, &begun); err != nil {
		return begun, fmt.Errorf("read %s: %w", osUpdateFile, err)
	}
	return begun, nil
}

// beginOSUpdate records that an update is begun.
func (r *reconciler) beginOSUpdate(update osUpdate) error {
	data, err := json.Marshal(update)
	if err != nil {
		return err
	}
	_, err = r.Root.Update(osUpdateFile, data, 0o600)
	return err
}

// updateOperatingSystem runs the command of the extension, which may reboot the machine. An attempt that left the old system after a reboot is not
// repeated. One of an agent that ended before the reboot is: its command may not have run, or not to its end.
func (p *pass) updateOperatingSystem(ctx context.Context) error {
	desired := p.osc.Spec.InPlaceUpdates.OperatingSystemVersion
	current, err := p.osVersion()
	if err != nil || current == desired {
		return err
	}
	const key = nodeagentconfigv1alpha1.AnnotationUpdatingOperatingSystemVersion
	boot, err := p.Root.Read(bootID)
	if err != nil {
		return err
	}
	begun, err := p.begunOSUpdate()
	if err != nil {
		return err
	}
	u, this := &p.update, osUpdate{desired, strings.TrimSpace(string(boot))}
	switch {
	case p.osc.Status.InPlaceUpdates == nil || p.osc.Status.InPlaceUpdates.OSUpdate == nil:
		return final{fmt.Errorf("the extension of the operating system has no command to update it to version %s", desired)}
	case u.osRan:
		return fmt.Errorf("the operating system has version %s, and not %s, although the update has run", current, desired)
	case p.node.Annotations[key] == desired && u.osSince.IsZero() && begun != this:
		return final{fmt.Errorf("the operating system was updated to version %s, and has version %s", desired, current)}
	}
	if u.osSince.IsZero() {
		u.osSince = p.Clock.Now()
	}
	// Before the annotation, without which the command is run in any case.
	if err := p.beginOSUpdate(this); err != nil {
		return err
	}
	if err := kube.PatchMetadata(ctx, p.Client, p.node, func(o *metav1.PartialObjectMetadata) { metav1.SetMetaDataAnnotation(&o.ObjectMeta, key, desired) }); err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&p.node.ObjectMeta, key, desired) // so that this pass can remove it
	command := p.osc.Status.InPlaceUpdates.OSUpdate
	logf.FromContext(ctx).Info("Updating the operating system", "from", current, "to", desired, "command", command.Command)
	output, err := p.Run(ctx, command.Command, command.Args...)
	if err == nil {
		u.osRan = true
		if current, err = p.osVersion(); err == nil && current != desired {
			err = fmt.Errorf("the operating system has version %s until the machine has rebooted", current)
		}
		return err
	}
	err = fmt.Errorf("update the operating system to version %s: %w: %s", desired, err, short(errors.New(strings.TrimSpace(output))))
	if osErrorFinal(output) || p.Clock.Since(u.osSince) > osUpdateWithin && !osErrorOfNetwork(output) {
		u.osSince = time.Time{}
		return errors.Join(final{err}, p.Root.Remove(osUpdateFile)) // so that the command is not run again
	}
	return err
}

func osErrorFinal(output string) bool {
	return matchAny(output, "invalid argument", "invalid option", "unrecognized option", "system failure")
}

func osErrorOfNetwork(output string) bool {
	return matchAny(output, "network", "timeout", "timed out", "connection refused", "could not resolve", "temporary failure in name resolution")
}

func matchAny(text string, parts ...string) bool {
	text = strings.ToLower(text)
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// updateFailed reports that an update has failed, if it is final or has failed for long. The agent tries again, except after a final error.
func (r *reconciler) updateFailed(ctx context.Context, node *corev1.Node, cause error) error {
	if r.update.failing.IsZero() {
		r.update.failing = r.Clock.Now()
	}
	isFinal := errors.As(cause, new(final))
	if !isFinal && r.Clock.Since(r.update.failing) < updateWithin {
		return cause
	}
	if err := r.setResult(ctx, node, machinev1alpha1.NodeUpdateFailed, short(cause)); err != nil {
		return errors.Join(cause, err)
	}
	if isFinal {
		return reconcile.TerminalError(cause)
	}
	return cause
}

// finishUpdate ends the update of a Node that has the current configuration: when the kubelet is healthy, the pods that are left are deleted, as they were
// started by another kubelet or with other credentials, and the Node is labelled. It returns the delay until it is called again, 0 if it is done.
func (r *reconciler) finishUpdate(ctx context.Context, node *corev1.Node) (time.Duration, error) {
	if node == nil || !mayUpdate(node) || node.Labels[machinev1alpha1.NodeUpdateResult] == machinev1alpha1.NodeUpdateSuccessful {
		return 0, nil
	}
	r.update.failing = time.Time{}
	if unhealthy := r.KubeletHealthy(ctx, node); unhealthy != nil {
		if r.update.unhealthy.IsZero() {
			r.update.unhealthy = r.Clock.Now()
		}
		if r.Clock.Since(r.update.unhealthy) < healthyWithin {
			return checkAgain, nil
		}
		return checkAgain, r.setResult(ctx, node, machinev1alpha1.NodeUpdateFailed, "The kubelet is not healthy after the update: "+short(unhealthy))
	}
	if err := r.DeletePods(ctx, node.Name); err != nil {
		return 0, fmt.Errorf("delete the pods of the Node: %w", err)
	}
	logf.FromContext(ctx).Info("Updated the machine in place")
	r.update = update{}
	if err := r.Root.Remove(osUpdateFile); err != nil {
		return 0, err
	}
	return 0, r.setResult(ctx, node, machinev1alpha1.NodeUpdateSuccessful, "")
}

// setResult labels a Node with the result of its update.
func (r *reconciler) setResult(ctx context.Context, node *corev1.Node, result, reason string) error {
	err := kube.PatchMetadata(ctx, r.Client, node, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataLabel(&o.ObjectMeta, machinev1alpha1.NodeUpdateResult, result)
		if reason != "" {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, machinev1alpha1.MachineUpdateFailedReason, reason)
			return
		}
		delete(o.Annotations, machinev1alpha1.MachineUpdateFailedReason)
		delete(o.Annotations, nodeagentconfigv1alpha1.AnnotationUpdatingOperatingSystemVersion)
	})
	if err != nil {
		return fmt.Errorf("report the result of the update on Node %q: %w", node.Name, err)
	}
	if result == machinev1alpha1.NodeUpdateFailed && node.Labels[machinev1alpha1.NodeUpdateResult] != result {
		r.Recorder.Eventf(node, nil, corev1.EventTypeWarning, "InPlaceUpdateFailed", "Update", "%s", reason)
	}
	return nil
}
