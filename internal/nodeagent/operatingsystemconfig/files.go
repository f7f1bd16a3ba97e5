package operatingsystemconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/nodeagent/imagefile"
)

const (
	// imageFilesFile has the image of each file that was extracted from one.
	imageFilesFile = nodeagentconfigv1alpha1.BaseDir + "/image-files.json"
	// imageTimeout is how long the files of an image may take.
	imageTimeout = 10 * time.Minute
)

// origins are the images that files were extracted from, by the paths of the files. See origin for the format.
type origins map[string]string

// writeFiles writes the files that differ from the configuration. Files in images differ if their origin does. Registries are configured in
// between: their CA certificates are files, and images come from them. The agent's own binary comes last, and its configuration right
// after it, even if something else failed: the configuration may have fields that only the binary of its version understands, and the
// agent may be killed at any time.
func (p *pass) writeFiles(ctx context.Context) error {
	known, err := p.readOrigins()
	if err != nil {
		return err
	}
	images := map[string][]imagefile.File{}
	var errs []error
	var agentConfig *extensionsv1alpha1.File
	agentImage := "" // if the binary is to be extracted from it
	for _, file := range p.files {
		if file.Path == operatingsystemconfig.NodeAgentConfigFile {
			agentConfig = &file
			continue
		}
		if ref := file.Content.ImageRef; ref != nil {
			if known[file.Path] != origin(ref.Image, ref.FilePathInImage, mode(file)) || !p.Root.Exists(file.Path) {
				images[ref.Image] = append(images[ref.Image], imagefile.File{InImage: ref.FilePathInImage, Path: file.Path, Mode: mode(file)})
				if file.Path == nodeagentconfigv1alpha1.PathBinary {
					agentImage = ref.Image
				}
			}
			continue
		}
		errs = append(errs, p.writeInline(ctx, file))
	}
	errs = append(errs, p.configureRegistries(ctx))
	names := slices.Sorted(maps.Keys(images))
	if agentImage != "" {
		names = append(slices.DeleteFunc(names, func(image string) bool { return image == agentImage }), agentImage)
	}
	for _, image := range names {
		if err := p.extract(ctx, image, images[image], known); err != nil {
			errs = append(errs, err)
			if image == agentImage {
				agentConfig = nil // its binary is missing
			}
			continue
		}
		errs = append(errs, p.saveOrigins(known))
	}
	if agentConfig != nil {
		errs = append(errs, p.writeInline(ctx, *agentConfig))
	}
	return errors.Join(errs...)
}

// writeInline writes a file whose content is in the configuration.
func (p *pass) writeInline(ctx context.Context, file extensionsv1alpha1.File) error {
	data, err := content(file)
	if err != nil {
		return err
	}
	return p.write(ctx, file.Path, data, mode(file), usersOf(file.Path, p.units)...)
}

// write writes a file that differs, after the units that use it are marked. A file that they have edited stays.
func (p *pass) write(ctx context.Context, path string, data []byte, mode fs.FileMode, users ...string) error {
	same, err := p.Root.Same(path, data, mode)
	if same || err != nil {
		return err
	}
	if isEdit, err := p.isEdit(path, mode); isEdit || err != nil {
		return err
	}
	logf.FromContext(ctx).Info("Writing file", "path", path)
	if err := p.markFiles(users, path); err != nil {
		return err
	}
	return p.Root.Write(path, data, mode)
}

// usersOf are the names of the units that are restarted when a file changes.
func usersOf(file string, units []extensionsv1alpha1.Unit) []string {
	var names []string
	for _, unit := range units {
		if slices.Contains(unit.FilePaths, file) {
			names = append(names, unit.Name)
		}
	}
	return names
}

// extract writes files of an image, after the units that use them are marked, and changes their origins, which are not saved afterwards.
// Before the first file is replaced, their old origins are removed and that is saved: should the extraction end half way, it is not
// known which image they are from.
func (p *pass) extract(ctx context.Context, image string, files []imagefile.File, known origins) error {
	ctx, cancel := context.WithTimeout(ctx, imageTimeout)
	defer cancel()
	logf.FromContext(ctx).Info("Extracting files from image", "image", image, "files", len(files))
	var users, paths []string
	for _, file := range files {
		users, paths = append(users, usersOf(file.Path, p.units)...), append(paths, file.Path)
	}
	if err := p.markFiles(users, paths...); err != nil {
		return err
	}
	err := p.Extract(ctx, p.Root, image, files, func() error {
		for _, file := range files {
			delete(known, file.Path)
		}
		return p.saveOrigins(known)
	})
	if err != nil {
		return err
	}
	for _, file := range files {
		known[file.Path] = origin(image, file.InImage, file.Mode)
	}
	return nil
}

// origin identifies a file in an image, with the mode that it got on the machine.
func origin(image, path string, mode fs.FileMode) string {
	return fmt.Sprintf("%s %s %s", image, path, mode.Perm())
}

// readOrigins returns the origins of those files that the configuration still has from an image.
func (p *pass) readOrigins() (origins, error) {
	known, err := p.savedOrigins()
	if err != nil {
		return nil, err
	}
	saved := len(known)
	maps.DeleteFunc(known, func(path, _ string) bool {
		return !slices.ContainsFunc(p.files, func(f extensionsv1alpha1.File) bool { return f.Path == path && f.Content.ImageRef != nil })
	})
	if len(known) < saved { // before the file gets another content
		return known, p.saveOrigins(known)
	}
	return known, nil
}

// savedOrigins reads the origins that were saved. That of the agent itself came with the machine.
func (p *pass) savedOrigins() (origins, error) {
	known := origins{}
	data, err := p.Root.Read(imageFilesFile)
	if err == nil {
		if err := json.Unmarshal(data, &known); err != nil {
			return nil, fmt.Errorf("read %s: %w", imageFilesFile, err)
		}
		return known, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	image, err := p.Root.Read(operatingsystemconfig.InstalledImageFile)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	known[nodeagentconfigv1alpha1.PathBinary] = origin(strings.TrimSpace(string(image)), operatingsystemconfig.NodeAgentPathInImage, 0o755)
	return known, err
}

func (p *pass) saveOrigins(known origins) error {
	data, err := json.Marshal(known)
	if err != nil {
		return err
	}
	return p.Root.Write(imageFilesFile, data, 0o600)
}
