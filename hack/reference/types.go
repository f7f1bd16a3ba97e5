package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

const module = "gardener.cloud/gardener/"

// goPackage is one group and version.
type goPackage struct {
	path  string // within the module: api/core/v1beta1
	group string
	doc   string
	types []*goType
}

// goType is an exported type of a package.
type goType struct {
	name   string
	doc    string
	expr   ast.Expr
	kind   bool              // has an apiVersion and a kind of its own
	values []value           // constants of the type
	from   map[string]string // imports of its file: name in the file to path
}

// value is a constant.
type value struct{ literal, doc string }

// load parses the packages with types, sorted by path.
func load(root string) ([]*goPackage, error) {
	dirs := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "api"), func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() == "doc.go" {
			dirs[filepath.Dir(file)] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var packages []*goPackage
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return nil, err
		}
		p, err := parse(dir, filepath.ToSlash(rel))
		if err != nil {
			return nil, err
		}
		if len(p.types) > 0 {
			packages = append(packages, p)
		}
	}
	return packages, nil
}

func parse(dir, rel string) (*goPackage, error) {
	p := &goPackage{path: rel}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	constants := map[string][]value{}
	for _, file := range files {
		base := filepath.Base(file)
		if strings.HasPrefix(base, "zz_") || strings.HasSuffix(base, "_test.go") || strings.HasSuffix(base, ".pb.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if f.Doc != nil {
			p.doc = strings.Replace(prose(f.Doc.Text()), "Package "+f.Name.Name, "This", 1)
		}
		p.read(f, constants)
	}
	if p.group == "" { // types that the configurations of several components have
		p.group = path.Base(path.Dir(rel))
	}
	for _, t := range p.types {
		t.values = constants[t.name]
	}
	slices.SortFunc(p.types, func(a, b *goType) int {
		if a.kind != b.kind {
			if a.kind {
				return -1
			}
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	return p, nil
}

// read collects the types and constants of a file.
func (p *goPackage) read(f *ast.File, constants map[string][]value) {
	imports := map[string]string{}
	for _, spec := range f.Imports {
		full, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // invalid only if the parser had failed
		}
		name := path.Base(full)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = full
	}
	for _, decl := range f.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if !spec.Name.IsExported() || hasField(spec.Type, "ListMeta") || !serialized(spec.Type) {
					continue
				}
				text := spec.Doc
				if text == nil {
					text = gen.Doc
				}
				p.types = append(p.types, &goType{
					name: spec.Name.Name, doc: prose(text.Text()), expr: spec.Type, kind: hasField(spec.Type, "TypeMeta"), from: imports,
				})
			case *ast.ValueSpec:
				if gen.Tok != token.CONST || len(spec.Values) != 1 {
					continue
				}
				literal, ok := spec.Values[0].(*ast.BasicLit)
				if !ok {
					continue
				}
				if spec.Names[0].Name == "GroupName" {
					p.group = strings.Trim(literal.Value, `"`)
				}
				if named, ok := spec.Type.(*ast.Ident); ok {
					if spec.Doc == nil && !gen.Lparen.IsValid() {
						spec.Doc = gen.Doc
					}
					constants[named.Name] = append(constants[named.Name], value{literal.Value, prose(spec.Doc.Text())})
				}
			}
		}
	}
}

// serialized reports whether values of a type are serialized: other types are not in the reference.
func serialized(expr ast.Expr) bool {
	switch t := expr.(type) {
	case *ast.StructType:
		return slices.ContainsFunc(t.Fields.List, func(f *ast.Field) bool { return f.Tag != nil })
	case *ast.InterfaceType, *ast.FuncType:
		return false
	}
	return true
}

// hasField reports whether a struct has an embedded field with the name of a type.
func hasField(expr ast.Expr, name string) bool {
	t, ok := expr.(*ast.StructType)
	return ok && slices.ContainsFunc(t.Fields.List, func(f *ast.Field) bool {
		selector, ok := f.Type.(*ast.SelectorExpr)
		return ok && len(f.Names) == 0 && selector.Sel.Name == name
	})
}

func (p *goPackage) version() string { return path.Base(p.path) }

// kind is the part of the reference with the package.
func (p *goPackage) kind() string {
	if strings.HasPrefix(p.path, "api/config/") {
		return "config"
	}
	return "api"
}

// file is the path of the page below docs/reference.
func (p *goPackage) file() string {
	name := strings.TrimPrefix(strings.TrimPrefix(p.path, "api/"), "config/")
	return path.Join(p.kind(), strings.ReplaceAll(name, "/", "-")+".md")
}

func (p *goPackage) kinds() []string {
	var names []string
	for _, t := range p.types {
		if t.kind {
			names = append(names, t.name)
		}
	}
	return names
}

// page is the whole page of a package.
func (p *goPackage) page(all []*goPackage) []byte {
	b := &bytes.Buffer{}
	fmt.Fprintf(b, "%s# %s/%s\n\n%s\n", note, p.group, p.version(), p.doc)
	if kinds := p.kinds(); len(kinds) > 0 {
		b.WriteString("\nKinds:")
		for i, name := range kinds {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(b, " [%s](#%s)", name, strings.ToLower(name))
		}
		b.WriteString("\n")
	}
	for _, t := range p.types {
		p.section(b, all, t)
	}
	return b.Bytes()
}

func (p *goPackage) section(b *bytes.Buffer, all []*goPackage, t *goType) {
	fmt.Fprintf(b, "\n## %s\n", t.name)
	if t.doc != "" {
		fmt.Fprintf(b, "\n%s\n", t.doc)
	}
	structure, ok := t.expr.(*ast.StructType)
	if !ok {
		fmt.Fprintf(b, "\nIs written as %s.\n", p.typeName(all, t, t.expr))
		if len(t.values) > 0 {
			b.WriteString("\n| value | |\n|---|---|\n")
			for _, v := range t.values {
				fmt.Fprintf(b, "| `%s` | %s |\n", strings.Trim(v.literal, `"`), cell(v.doc))
			}
		}
		return
	}
	b.WriteString("\n| field | type | |\n|---|---|---|\n")
	if t.kind {
		fmt.Fprintf(b, "| `apiVersion` | string | `%s/%s` |\n| `kind` | string | `%s` |\n", p.group, p.version(), t.name)
	}
	for _, field := range structure.Fields.List {
		p.row(b, all, t, field)
	}
}

// row is a field in the table of a struct.
func (p *goPackage) row(b *bytes.Buffer, all []*goPackage, t *goType, field *ast.Field) {
	if field.Tag == nil {
		return
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return // invalid only if the parser had failed
	}
	name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	kind := p.typeName(all, t, field.Type)
	switch {
	case name == "-", strings.HasSuffix(kind, "TypeMeta"):
		return
	case name == "" && len(field.Names) == 0:
		fmt.Fprintf(b, "| | %s | Its fields are fields here. |\n", kind)
		return
	}
	text := prose(field.Doc.Text())
	if strings.HasSuffix(kind, "ObjectMeta") && text == "" {
		text = "Name, labels, annotations and so on."
	}
	if name != "metadata" && name != "status" && required(field, options) {
		text += " Required."
	}
	for _, line := range comments(field.Doc) {
		for _, marker := range []string{"+kubebuilder:default=", "+kubebuilder:default:=", "+default="} {
			if fallback, ok := strings.CutPrefix(line, marker); ok {
				text += " Default: `" + strings.Trim(fallback, `"`) + "`."
			}
		}
	}
	fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, kind, cell(strings.TrimSpace(text)))
}

func comments(group *ast.CommentGroup) []string {
	if group == nil {
		return nil
	}
	var lines []string
	for _, c := range group.List {
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(c.Text, "//")))
	}
	return lines
}

// required reports whether generators of schemas treat a field as required: it has no marker +optional, and is serialized when empty.
func required(field *ast.Field, options string) bool {
	if slices.Contains(comments(field.Doc), "+optional") || strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
		return false
	}
	_, pointer := field.Type.(*ast.StarExpr)
	return !pointer
}

// typeName writes a type as JSON has it, with a link if the reference has it.
func (p *goPackage) typeName(all []*goPackage, t *goType, expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return p.typeName(all, t, e.X)
	case *ast.ArrayType:
		if element, ok := e.Elt.(*ast.Ident); ok && element.Name == "byte" {
			return "base64"
		}
		return "list of " + p.typeName(all, t, e.Elt)
	case *ast.MapType:
		return "map of " + p.typeName(all, t, e.Value)
	case *ast.Ident:
		if slices.ContainsFunc(p.types, func(other *goType) bool { return other.name == e.Name }) {
			return fmt.Sprintf("[%s](#%s)", e.Name, strings.ToLower(e.Name))
		}
		return e.Name
	case *ast.SelectorExpr:
		imported, ok := e.X.(*ast.Ident)
		if !ok {
			return e.Sel.Name
		}
		full := t.from[imported.Name]
		for _, other := range all {
			if module+other.path != full {
				continue
			}
			file, err := filepath.Rel(path.Dir(p.file()), other.file())
			if err == nil && slices.ContainsFunc(other.types, func(o *goType) bool { return o.name == e.Sel.Name }) {
				return fmt.Sprintf("[%s](%s#%s)", e.Sel.Name, filepath.ToSlash(file), strings.ToLower(e.Sel.Name))
			}
		}
		return shortPath(full) + "." + e.Sel.Name
	case *ast.StructType:
		return "object"
	}
	return "any"
}

// shortPath is the last two parts of an import path, such as core/v1.
func shortPath(full string) string {
	parts := strings.Split(full, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}

// prose is a doc comment without its markers, as Markdown paragraphs.
func prose(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "+") {
			lines = append(lines, line)
		}
	}
	text = strings.TrimSpace(strings.Join(lines, ""))
	if text == "" {
		return ""
	}
	var p doc.Package
	printer := p.Printer()
	printer.HeadingID = func(*comment.Heading) string { return "" }
	return strings.TrimSpace(string(printer.Markdown(p.Parser().Parse(text))))
}

// cell fits a text into one cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
