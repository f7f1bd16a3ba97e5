package distribution

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Annotations on the images of a layout. The second is containerd's name for an imported image.
const (
	annotationRef            = "org.opencontainers.image.ref.name"
	annotationContainerdName = "io.containerd.image.name"
)

const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Image is an image of an artifact, in its OCI image layout.
type Image struct {
	Reference string `json:"reference"`
	Digest    string `json:"digest"`

	layout string
}

// Load opens the image; its layers are read from the cache when they are used.
func (i Image) Load() (v1.Image, error) {
	digest, err := v1.NewHash(i.Digest)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", i.Reference, err)
	}
	path, err := layout.FromPath(i.layout)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", i.Reference, err)
	}
	return path.Image(digest)
}

// complete reports whether all of the image is in its layout, by the sizes of its parts, and its SBOM is beside that.
func (i Image) complete() bool {
	if !exists(i.SBOM()) {
		return false
	}
	image, err := i.Load()
	if err != nil {
		return false
	}
	m, err := image.Manifest()
	if err != nil {
		return false
	}
	for _, part := range append(m.Layers, m.Config) {
		info, err := os.Stat(filepath.Join(i.layout, "blobs", "sha256", part.Digest.Hex))
		if err != nil || info.Size() != part.Size {
			return false
		}
	}
	return true
}

// writeImages assembles the images of a product in the layout that already holds its own layers. The layers of base products are
// hard links, so that a layout is complete and takes no more space.
func (d *Distribution) writeImages(dir string, v variant, own []Layer) ([]Image, error) {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return nil, err
	}
	var images []Image
	for _, recipe := range v.recipe.Images {
		layers := []blob{}
		for _, from := range recipe.From {
			base, err := d.Artifact(from)
			if err != nil {
				return nil, err
			}
			m, err := base.manifest()
			if err != nil {
				return nil, err
			}
			for _, l := range m.Layers {
				source := filepath.Join(base.ImagesDir(), "blobs", "sha256", l.Digest.Hex)
				if err := linkOrCopy(source, blobFile(dir, l)); err != nil {
					return nil, err
				}
				layers = append(layers, blob{l, blobFile(dir, l)})
			}
		}
		for _, l := range own {
			layers = append(layers, blob{l, blobFile(dir, l)})
		}
		if len(recipe.Programs) > 0 {
			l, err := writeLayer(dir, programEntries(v.recipe.Binaries, recipe.Programs))
			if err != nil {
				return nil, err
			}
			layers = append(layers, blob{l, blobFile(dir, l)})
		}
		image, reference, err := assemble(v, recipe, d.architecture, layers)
		if err != nil {
			return nil, fmt.Errorf("assemble %s: %w", recipe.Repository, err)
		}
		digest, err := image.Digest()
		if err != nil {
			return nil, err
		}
		size, err := image.Size()
		if err != nil {
			return nil, err
		}
		if err := path.WriteImage(image); err != nil {
			return nil, fmt.Errorf("write image %s: %w", reference, err)
		}
		err = path.AppendDescriptor(v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Digest: digest, Size: size,
			Annotations: map[string]string{annotationRef: reference, annotationContainerdName: reference},
		})
		if err != nil {
			return nil, fmt.Errorf("write image %s: %w", reference, err)
		}
		images = append(images, Image{Reference: reference, Digest: digest.String()})
	}
	return images, nil
}

// programEntries are the links that an image is for, and what tells each binary that has links under which of them it acts.
func programEntries(binaries []Binary, programs []string) []entry {
	var entries []entry
	for _, binary := range binaries {
		if len(binary.Links) == 0 {
			continue
		}
		var list strings.Builder
		for _, program := range programs {
			if slices.Contains(binary.Links, program) {
				list.WriteString(program + "\n")
				entries = append(entries, linkEntry(strings.TrimSuffix(binary.dir(), "/")+"/"+program, binary.Name))
			}
		}
		// A binary with none of the programs gets the file, too: it acts under no name at all.
		entries = append(entries, textEntry("/usr/local/share/"+binary.Name+"/programs", list.String()))
	}
	return entries
}

func blobFile(layout string, l Layer) string {
	return filepath.Join(layout, "blobs", "sha256", l.Digest.Hex)
}

// assemble returns the image and its reference. The same layers and recipe give the same digest.
func assemble(v variant, recipe ImageRecipe, architecture string, layers []blob) (v1.Image, string, error) {
	reference, err := recipe.reference(v.values())
	if err != nil {
		return nil, "", err
	}
	labels := map[string]string{
		"org.opencontainers.image.title":    recipe.Repository[strings.LastIndex(recipe.Repository, "/")+1:],
		"org.opencontainers.image.version":  v.version,
		"org.opencontainers.image.licenses": v.recipe.Licenses,
	}
	if v.recipe.Source != "" {
		labels["org.opencontainers.image.source"] = v.recipe.Source
	}
	maps.Copy(labels, recipe.Labels)
	env := []string{defaultPath}
	for _, name := range slices.Sorted(maps.Keys(recipe.Env)) {
		if name == "PATH" {
			env = env[1:]
		}
		env = append(env, name+"="+recipe.Env[name])
	}
	created := v1.Time{Time: time.Unix(0, 0).UTC()}
	image, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), &v1.ConfigFile{
		OS: "linux", Architecture: architecture, Created: created, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{Entrypoint: recipe.Entrypoint, Cmd: recipe.Cmd, User: recipe.User, StopSignal: recipe.StopSignal, Env: env, Labels: labels},
	})
	if err != nil {
		return nil, "", err
	}
	var addenda []mutate.Addendum
	for _, l := range layers {
		addenda = append(addenda, mutate.Addendum{
			Layer: l, MediaType: types.OCILayerZStd, History: v1.History{Created: created, CreatedBy: "distribution build " + v.ref()},
		})
	}
	image, err = mutate.Append(image, addenda...)
	return image, reference, err
}

// linkOrCopy creates a hard link to a file, or a copy where the file system does not support links.
func linkOrCopy(source, target string) error {
	if exists(target) {
		return nil
	}
	if os.Link(source, target) == nil {
		return nil
	}
	data, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	return os.WriteFile(target, data, 0o644)
}
