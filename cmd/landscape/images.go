package main

import (
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spf13/cobra"

	"gardener.cloud/gardener/internal/subcommand"
)

func (c *cli) imagesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "images", Short: "Work with the landscape's registry", Args: cobra.ArbitraryArgs, RunE: subcommand.Choose}
	cmd.AddCommand(&cobra.Command{
		Use:   "push IMAGE SOURCE",
		Short: "Push an image to the registry that all machines pull from",
		Long: `Examples:
  landscape images push registry.local.gardener.cloud/me/tool:dev tool.tar    # a file of "docker save" or alike
  landscape images push quay.io/me/tool:v1 ./layout                           # a directory that is an OCI image layout
  landscape images push registry.k8s.io/kubectl:v1.35.4 kubernetes@v1.35.4    # a product of the distribution

Machines pull the image by this name, whatever its registry: they try the landscape's registry first.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := c.open()
			if err != nil {
				return err
			}
			if _, err := name.ParseReference(args[0]); err != nil {
				return fmt.Errorf("image %q: %w", args[0], err)
			}
			image, err := c.loadImage(args[0], args[1])
			if err != nil {
				return err
			}
			digest, err := l.Push(cmd.Context(), args[0], image)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.out, "%s@%s\n", args[0], digest)
			return err
		},
	})
	return cmd
}

// loadImage reads an image from a tar file, an OCI image layout, or the distribution.
func (c *cli) loadImage(reference, source string) (v1.Image, error) {
	if path, err := layout.FromPath(source); err == nil {
		index, err := path.ImageIndex()
		if err != nil {
			return nil, err
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			return nil, err
		}
		for _, image := range manifest.Manifests {
			if len(manifest.Manifests) == 1 || image.Annotations["org.opencontainers.image.ref.name"] == reference {
				return path.Image(image.Digest)
			}
		}
		return nil, fmt.Errorf("%s holds %d images, none of them named %s", source, len(manifest.Manifests), reference)
	}
	if strings.HasSuffix(source, ".tar") || strings.ContainsRune(source, '/') {
		image, err := tarball.ImageFromPath(source, nil)
		if err != nil {
			return nil, fmt.Errorf("read image from %s: %w", source, err)
		}
		return image, nil
	}
	builds, err := c.builds()
	if err != nil {
		return nil, err
	}
	artifact, err := builds.Artifact(source)
	if err != nil {
		return nil, err
	}
	images, err := artifact.Images()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, image := range images {
		if len(images) == 1 || image.Reference == reference {
			return image.Load()
		}
		names = append(names, image.Reference)
	}
	return nil, fmt.Errorf("product %s holds no image %s, but: %s", source, reference, strings.Join(names, ", "))
}
