// Package bootstrap makes the gardener-node-agent a service of a new machine. Before, it mounts the data volume of the kubelet, which has
// to be there before anything else is installed.
package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/go-logr/logr"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
)

const (
	unitFile = "/etc/systemd/system/" + nodeagentconfigv1alpha1.UnitName
	// diskLabel is the label of the file system on the kubelet's disk, by which it is found again.
	diskLabel = "KUBEDEV"
)

// Systemd is the part of systemd that is needed.
type Systemd interface {
	Reload(ctx context.Context) error
	Enable(ctx context.Context, unit string) error
	Disable(ctx context.Context, unit string) error
	Restart(ctx context.Context, unit string) error
}

// Run makes the agent a service and starts it. If it fails, it is repeated: at the latest, the init unit runs it again at the next boot.
func Run(ctx context.Context, root rootfs.Dir, systemd Systemd, config *nodeagentconfigv1alpha1.BootstrapConfiguration) error {
	log := logr.FromContextOrDiscard(ctx)
	if config != nil && config.KubeletDataVolumeSize != nil {
		if err := useDisk(ctx, root, *config.KubeletDataVolumeSize); err != nil {
			return fmt.Errorf("prepare the disk of the kubelet: %w", err)
		}
	}
	if _, err := root.Update(unitFile, []byte(operatingsystemconfig.NodeAgentUnit()), 0o644); err != nil {
		return err
	}
	// Also if the file has not changed: an earlier run may have ended before systemd read it.
	if err := systemd.Reload(ctx); err != nil {
		return fmt.Errorf("reload systemd: %w", err)
	}
	log.Info("Starting unit", "unit", nodeagentconfigv1alpha1.UnitName)
	if err := systemd.Enable(ctx, nodeagentconfigv1alpha1.UnitName); err != nil {
		return fmt.Errorf("enable unit %s: %w", nodeagentconfigv1alpha1.UnitName, err)
	}
	if err := systemd.Restart(ctx, nodeagentconfigv1alpha1.UnitName); err != nil {
		return fmt.Errorf("restart unit %s: %w", nodeagentconfigv1alpha1.UnitName, err)
	}
	// Last, as this unit is what starts the agent until then. It runs until this command ends, and is not started at the next boot.
	if err := systemd.Disable(ctx, nodeagentconfigv1alpha1.InitUnitName); err != nil {
		return fmt.Errorf("disable unit %s: %w", nodeagentconfigv1alpha1.InitUnitName, err)
	}
	return nil
}

// disk is a block device as lsblk reports it.
type disk struct {
	Name        string    `json:"name"`
	Path        string    `json:"path"`
	Type        string    `json:"type"`
	Size        int64     `json:"size"`
	Label       *string   `json:"label"`
	FSType      *string   `json:"fstype"`
	Mountpoints []*string `json:"mountpoints"`
	Children    []disk    `json:"children"`
}

// useDisk formats the data volume of the kubelet, unless it was formatted before, and mounts it at the kubelet's directory.
func useDisk(ctx context.Context, root rootfs.Dir, size int64) error {
	out, err := exec.CommandContext(ctx, "lsblk", "--json", "--bytes", "--output", "NAME,PATH,TYPE,SIZE,LABEL,FSTYPE,MOUNTPOINTS").Output()
	if err != nil {
		return fmt.Errorf("list disks: %w", err)
	}
	var listed struct {
		Disks []disk `json:"blockdevices"`
	}
	if err := json.Unmarshal(out, &listed); err != nil {
		return fmt.Errorf("list disks: %w", err)
	}
	chosen, format, err := choose(listed.Disks, size)
	if err != nil {
		return err
	}
	log := logr.FromContextOrDiscard(ctx)
	if format {
		log.Info("Formatting disk", "disk", chosen.Path)
		mkfs := exec.CommandContext(ctx, "mkfs.ext4", "-L", diskLabel, "-O", "quota", "-E", "quotatype=prjquota", chosen.Path)
		if out, err := mkfs.CombinedOutput(); err != nil {
			return fmt.Errorf("format %s: %w: %s", chosen.Path, err, out)
		}
	}
	if slices.ContainsFunc(chosen.Mountpoints, func(m *string) bool { return m != nil && *m == operatingsystemconfig.KubeletDir }) {
		return nil
	}
	// With a unit, so that it is mounted at each boot.
	const unit = "var-lib-kubelet.mount"
	content := "[Unit]\nBefore=kubelet.service\n\n[Mount]\nWhat=/dev/disk/by-label/" + diskLabel + "\nWhere=" + operatingsystemconfig.KubeletDir +
		"\nType=ext4\nOptions=defaults,prjquota,errors=remount-ro\n\n[Install]\nWantedBy=local-fs.target\n"
	if err := root.Write(filepath.Join("/etc/systemd/system", unit), []byte(content), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", "--now", unit}} {
		if out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("mount %s: %w: %s", chosen.Path, err, out)
		}
	}
	return nil
}

// choose returns the disk that was formatted for the kubelet before, or else an empty one of the size, which is to be formatted.
func choose(disks []disk, size int64) (chosen disk, format bool, err error) {
	for _, d := range disks {
		if d.Label != nil && *d.Label == diskLabel {
			return d, false, nil
		}
	}
	for _, d := range disks {
		used := slices.ContainsFunc(d.Mountpoints, func(m *string) bool { return m != nil })
		if d.Type == "disk" && d.Size == size && len(d.Children) == 0 && d.FSType == nil && !used {
			return d, true, nil
		}
	}
	return disk{}, false, fmt.Errorf("there is no empty disk of %d bytes", size)
}
