package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// selectedNode is what the scheduler writes on a claim, and ownNode what Provision writes on a volume: the name of the node.
const (
	selectedNode = "volume.kubernetes.io/selected-node"
	ownNode      = "local-storage.gardener.cloud/node"
)

// nodeReader reads nodes.
type nodeReader interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Node, error)
}

// provisioner creates and deletes the volumes of one node. A volume is a directory below base that every user may write to, so
// that pods need no init container; only root can enter base itself, so that other users of the node cannot.
type provisioner struct {
	base     *os.Root // no path leads out of it
	dir      string   // base on the node
	node     string
	hostname string // the value of the node's label kubernetes.io/hostname
	nodes    nodeReader
}

var (
	_ controller.Provisioner   = &provisioner{}
	_ controller.Qualifier     = &provisioner{}
	_ controller.DeletionGuard = &provisioner{}
)

func newProvisioner(dir string, node *corev1.Node, nodes nodeReader) (*provisioner, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of volumes: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of volumes: %w", err)
	}
	base, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the directory of volumes: %w", err)
	}
	hostname := node.Labels[corev1.LabelHostname]
	if hostname == "" {
		hostname = node.Name
	}
	return &provisioner{base: base, dir: dir, node: node.Name, hostname: hostname, nodes: nodes}, nil
}

// ShouldProvision accepts the claims for which the scheduler chose this node.
func (p *provisioner) ShouldProvision(_ context.Context, claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[selectedNode] == p.node
}

// Provision is idempotent: a directory that an earlier attempt created is used.
func (p *provisioner) Provision(_ context.Context, o controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if err := p.check(o); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	if err := p.base.Mkdir(o.PVName, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, controller.ProvisioningFinished, fmt.Errorf("create the volume on node %s: %w", p.node, err)
	}
	// Again, because the umask removed some of the mode.
	if err := p.base.Chmod(o.PVName, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("set the mode of the volume on node %s: %w", p.node, err)
	}
	mode := corev1.PersistentVolumeFilesystem
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName, Annotations: map[string]string{ownNode: p.node}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			AccessModes:                   o.PVC.Spec.AccessModes,
			VolumeMode:                    &mode,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]},
			// Not hostPath, because the kubelet gives a local volume to a pod's fsGroup.
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: filepath.Join(p.dir, o.PVName)}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{p.hostname}}},
			}}}},
		},
	}, controller.ProvisioningFinished, nil
}

// check refuses claims that a directory cannot satisfy. Its errors become events of the claim.
func (p *provisioner) check(o controller.ProvisionOptions) error {
	if !plainName(o.PVName) {
		return fmt.Errorf("%q cannot be the name of a directory", o.PVName)
	}
	if o.PVC.Spec.Selector != nil {
		return errors.New("a claim with a selector is bound to volumes that exist; remove spec.selector")
	}
	for _, mode := range o.PVC.Spec.AccessModes {
		if mode != corev1.ReadWriteOnce && mode != corev1.ReadWriteOncePod {
			return fmt.Errorf("access mode %s is not possible: a volume lies on one node; use ReadWriteOnce", mode)
		}
	}
	if names := slices.Sorted(maps.Keys(o.StorageClass.Parameters)); len(names) > 0 {
		return fmt.Errorf("StorageClass %q has unknown parameters: %s", o.StorageClass.Name, strings.Join(names, ", "))
	}
	return nil
}

// ShouldDelete accepts the volumes of this node, and those of deleted nodes, whose objects no other provisioner deletes.
func (p *provisioner) ShouldDelete(ctx context.Context, pv *corev1.PersistentVolume) bool {
	switch node := pv.Annotations[ownNode]; node {
	case "":
		return false
	case p.node:
		return true
	default:
		_, err := p.nodes.Get(ctx, node, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}
}

// Delete removes the directory, if it is on this node and still there.
func (p *provisioner) Delete(_ context.Context, pv *corev1.PersistentVolume) error {
	node := pv.Annotations[ownNode]
	if node == "" || pv.Spec.Local == nil {
		return &controller.IgnoredError{Reason: "the volume was not created by local-storage"}
	}
	if node != p.node {
		return nil // its node is gone, and the directory with it
	}
	dir, name := filepath.Split(pv.Spec.Local.Path)
	if filepath.Clean(dir) != p.dir || !plainName(name) {
		return fmt.Errorf("%s is not a volume in %s: remove it by hand, then PersistentVolume %s", pv.Spec.Local.Path, p.dir, pv.Name)
	}
	if err := p.base.RemoveAll(name); err != nil {
		return fmt.Errorf("remove the volume on node %s: %w", p.node, err)
	}
	return nil
}

// plainName reports whether a name is a single path element.
func plainName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, `/\`)
}
