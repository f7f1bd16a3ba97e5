// Package bootstrap makes the gardener-node-agent a service of a new machine, after what has to be done before anything else is
// installed: giving the kubelet and containerd the disk that is meant for them.
package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
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
	// diskLabel is what the file system on the kubelet's disk is called, so that it is found again.
	diskLabel = "KUBEDEV"
)

// Systemd is what is needed of systemd.
type Systemd interface {
	Reload(ctx context.Context) error
	Enable(ctx context.Context, unit string) error
	Disable(ctx context.Context, unit string) error
	Restart(ctx context.Context, unit string) error
}

// Run makes the agent a service and starts it. It may be run again.
func Run(ctx context.Context, root rootfs.Dir, systemd Systemd, config *nodeagentconfigv1alpha1.BootstrapConfiguration) error {
	log := logr.FromContextOrDiscard(ctx)
	if config != nil && config.KubeletDataVolumeSize != nil {
		if err := useDisk(ctx, root, *config.KubeletDataVolumeSize); err != nil {
			return fmt.Errorf("prepare the disk of the kubelet: %w", err)
		}
	}
	wrote, err := root.Update(unitFile, []byte(operatingsystemconfig.NodeAgentUnit()), 0o644)
	if err != nil {
		return err
	}
	if wrote {
		err = systemd.Reload(ctx)
	}
	log.Info("Starting the gardener-node-agent")
	return errors.Join(err,
		systemd.Enable(ctx, nodeagentconfigv1alpha1.UnitName),
		systemd.Restart(ctx, nodeagentconfigv1alpha1.UnitName),
		// Its work is done. It goes on until this command ends, and is not started at the next boot.
		systemd.Disable(ctx, nodeagentconfigv1alpha1.InitUnitName),
	)
}

// disk is a line of lsblk.
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

// useDisk formats the data volume of the kubelet, unless that was done before, and mounts it at the kubelet's directory.
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
	// By a unit, so that it is mounted at each boot.
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

// choose picks the disk: one that was formatted for the kubelet before, or an empty one of the size.
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
