package gardenctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/subcommand"
)

// asTable requests the table that kubectl shows too, with the columns of the server.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// pageSize is how many objects are requested at once. Shoots are large, and each request has a timeout.
const pageSize = 500

// resource is a kind that can be listed.
type resource struct {
	plural, singular string
	namespaced       bool
}

var resources = []resource{
	{plural: "shoots", singular: "shoot", namespaced: true},
	{plural: "projects", singular: "project"},
	{plural: "seeds", singular: "seed"},
}

// listing is a request of "get".
type listing struct {
	resource
	name, namespace, labels, fields, output string
	everywhere                              bool
}

func (c *cli) getCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get", Short: "List shoots, projects and seeds", Args: cobra.ArbitraryArgs, RunE: subcommand.Choose,
		Long: c.examples(`get shoots
  PROGRAM get shoots -A -o wide
  PROGRAM get shoot my-cluster -o yaml
  PROGRAM get seeds -l team=one -o name`) + `
With a targeted seed, "get shoots" lists the shoots on it, of all projects.`,
	}
	for _, r := range resources {
		l := listing{resource: r}
		get := &cobra.Command{
			Use: r.plural + " [NAME]", Aliases: []string{r.singular}, Short: "List " + r.plural, Args: cobra.MaximumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return c.get(cmd.Context(), l, args) },
			ValidArgsFunction: c.completion(map[string]func(context.Context, *garden, Target) ([]string, error){
				"shoots": c.shootNames, "projects": projectNames, "seeds": seedNames,
			}[r.plural]),
		}
		get.Flags().StringVarP(&l.output, "output", "o", "", "wide, yaml, json or name (default: a table)")
		get.Flags().StringVarP(&l.labels, "selector", "l", "", "labels that objects must have, as key=value,...")
		if r.namespaced {
			get.Flags().BoolVarP(&l.everywhere, "all-namespaces", "A", false, "of all projects")
		}
		cmd.AddCommand(get)
	}
	return cmd
}

func (c *cli) get(ctx context.Context, l listing, args []string) error {
	if !map[string]bool{"": true, "wide": true, "yaml": true, "json": true, "name": true}[l.output] {
		return fmt.Errorf("--output must be wide, yaml, json or name, not %q", l.output)
	}
	g, target, err := c.connect()
	if err != nil {
		return err
	}
	if len(args) > 0 {
		l.name = args[0]
		if l.labels != "" || l.everywhere {
			return errors.New("a name excludes --selector and --all-namespaces")
		}
	}
	if l.namespaced {
		switch {
		case l.name == "" && target.Seed != "" && !l.everywhere:
			l.fields, l.everywhere = fields.OneTermEqualSelector("spec.seedName", target.Seed).String(), true
		case !l.everywhere:
			ctx, cancel := within(ctx, requestTimeout)
			defer cancel()
			if l.namespace, err = c.namespaceOf(ctx, g, target); err != nil {
				return err
			}
		}
	}
	pages, err := l.ask(ctx, g.config)
	if err != nil {
		what := l.plural
		if l.name != "" {
			what = fmt.Sprintf("%s %q", l.singular, l.name)
		}
		if l.namespace != "" {
			what += fmt.Sprintf(" in namespace %q", l.namespace)
		}
		return c.explain(err, g, what, c.program()+" get "+l.plural)
	}
	if l.output == "" || l.output == "wide" {
		table := &metav1.Table{}
		for _, raw := range pages {
			page := &metav1.Table{}
			if err := json.Unmarshal(raw, page); err != nil {
				return fmt.Errorf("read the response of the garden: %w", err)
			}
			table.ColumnDefinitions, table.Rows = page.ColumnDefinitions, append(table.Rows, page.Rows...)
		}
		if len(table.Rows) == 0 {
			where := ""
			if l.namespace != "" {
				where = " in namespace " + l.namespace
			}
			fmt.Fprintf(c.ErrOut, "No %s found%s.\n", l.plural, where)
			return nil
		}
		if l.plural == "seeds" {
			counts, err := c.countShoots(ctx, g, l.name)
			if err != nil {
				return c.explain(err, g, "shoots", c.program()+" get shoots -A")
			}
			if table, err = seedTable(table, counts); err != nil {
				return err
			}
		}
		return printTable(c.Out, table, l.output == "wide", l.everywhere)
	}
	var objects []unstructured.Unstructured
	for _, raw := range pages {
		page, err := decode(raw)
		if err != nil {
			return fmt.Errorf("read the response of the garden: %w", err)
		}
		objects = append(objects, page...)
	}
	return printObjects(c.Out, objects, l)
}

// ask returns the unchanged responses of the garden, page by page.
func (l listing) ask(ctx context.Context, config *rest.Config) ([][]byte, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &corev1beta1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(gardenScheme()).WithoutConversion()
	restClient, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	var pages [][]byte
	for next := ""; len(pages) == 0 || next != ""; {
		raw, err := l.page(ctx, restClient, next)
		if err != nil {
			return nil, err
		}
		var list struct { // of any kind; a single object has no continue token
			Metadata metav1.ListMeta `json:"metadata"`
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("read the response of the garden: %w", err)
		}
		pages, next = append(pages, raw), list.Metadata.Continue
	}
	return pages, nil
}

// page requests the page of a continue token, which is empty for the first one.
func (l listing) page(ctx context.Context, restClient rest.Interface, after string) ([]byte, error) {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	request := restClient.Get().Resource(l.plural)
	if l.namespace != "" {
		request.Namespace(l.namespace)
	}
	if l.name != "" {
		request.Name(l.name)
	} else {
		request.Param("limit", strconv.Itoa(pageSize))
	}
	for name, value := range map[string]string{"labelSelector": l.labels, "fieldSelector": l.fields, "continue": after} {
		if value != "" {
			request.Param(name, value)
		}
	}
	accept := "application/json"
	if l.output == "" || l.output == "wide" {
		accept = asTable
		if l.plural == "seeds" { // for columns that the garden does not have
			request.Param("includeObject", string(metav1.IncludeObject))
		}
	}
	result := request.SetHeader("Accept", accept).Do(ctx)
	if err := result.Error(); err != nil { // unlike that of Raw, it has the message of the server
		return nil, err
	}
	return result.Raw()
}

// decode returns one object, or those of a list. Each of them has its kind.
func decode(raw []byte) ([]unstructured.Unstructured, error) {
	obj, _, err := unstructured.UnstructuredJSONScheme.Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	var objects []unstructured.Unstructured
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		objects = append(objects, *o)
	case *unstructured.UnstructuredList:
		objects = o.Items
	}
	for _, o := range objects {
		o.SetManagedFields(nil)
	}
	return objects, nil
}

func printObjects(out io.Writer, objects []unstructured.Unstructured, l listing) error {
	if l.output == "name" {
		for _, o := range objects {
			if _, err := fmt.Fprintf(out, "%s.%s/%s\n", l.singular, corev1beta1.GroupName, o.GetName()); err != nil {
				return err
			}
		}
		return nil
	}
	var content any
	if l.name != "" && len(objects) == 1 {
		content = objects[0].Object
	} else {
		items := make([]any, 0, len(objects))
		for _, o := range objects {
			items = append(items, o.Object)
		}
		content = map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items}
	}
	return printData(out, content, l.output)
}

// printData prints JSON or YAML.
func printData(out io.Writer, content any, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "    ")
		return encoder.Encode(content)
	}
	data, err := yaml.Marshal(content)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// printTable prints the columns of a table, all of them if wide.
func printTable(out io.Writer, table *metav1.Table, wide, namespaces bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	var header []string
	if namespaces {
		header = append(header, "NAMESPACE")
	}
	for _, column := range table.ColumnDefinitions {
		if wide || column.Priority == 0 {
			header = append(header, strings.ToUpper(column.Name))
		}
	}
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, row := range table.Rows {
		var cells []string
		if namespaces {
			meta := &metav1.PartialObjectMetadata{}
			if err := json.Unmarshal(row.Object.Raw, meta); err != nil {
				return err
			}
			cells = append(cells, meta.Namespace)
		}
		for i, cell := range row.Cells {
			if i >= len(table.ColumnDefinitions) || !wide && table.ColumnDefinitions[i].Priority != 0 {
				continue
			}
			text := fmt.Sprint(cell)
			if cell == nil {
				text = "<none>"
			}
			cells = append(cells, line(text))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}
