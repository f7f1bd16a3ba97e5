package gardenctl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"gardener.cloud/gardener/internal/gardenctl/schema"
)

func (c *cli) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema DIRECTORY", Short: "Write schemas of all kinds, for editors and checks of manifests", Args: cobra.ExactArgs(1),
		Long: c.examples(`schema schemas
  kubeconform -schema-location default -schema-location 'schemas/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json' garden.yaml`) + `
Files <group>/<kind>_<version>.json are JSON schemas, which refuse unknown fields. In an editor with yaml-language-server, the first line of a manifest
can be "# yaml-language-server: $schema=schemas/core.gardener.cloud/shoot_v1beta1.json". Files openapi/apis/<group>/<version>.json are OpenAPI
documents. No cluster is needed, and existing files are replaced.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if c.Definitions == nil {
				return errors.New("this program was built without the definitions of the API")
			}
			files, err := schema.Files(c.Definitions, version.Get().GitVersion)
			if err != nil {
				return err
			}
			for name, content := range files {
				file := filepath.Join(args[0], filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(file, content, 0o644); err != nil {
					return err
				}
			}
			fmt.Fprintf(c.ErrOut, "%d files are written\n", len(files))
			_, err = fmt.Fprintln(c.Out, args[0])
			return err
		},
	}
}
