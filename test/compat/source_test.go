package compat

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// source is what reflection does not show of the types of a package: comments and constants.
type source struct {
	// fields maps "Type.Field" to the doc comment.
	fields map[string]string
	// types maps the name of a type to its doc comment.
	types map[string]string
	// consts maps the name of a string type to the values of its constants.
	consts map[string][]string
	// undocumented are exported names without a doc comment.
	undocumented []string
}

// readSource parses the package in a directory below api/.
func readSource(t testing.TB, pkg string) source {
	t.Helper()
	out := source{fields: map[string]string{}, types: map[string]string{}, consts: map[string][]string{}}
	dir := filepath.Join("..", "..", "api", filepath.FromSlash(pkg))
	pkgs, err := parser.ParseDir(token.NewFileSet(), dir, func(f fs.FileInfo) bool {
		return !strings.HasSuffix(f.Name(), "_test.go") && !strings.Contains(f.Name(), "generated")
	}, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		for _, file := range p.Files {
			for _, decl := range file.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range gen.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						out.addType(spec, gen.Doc)
					case *ast.ValueSpec:
						out.addValue(spec, gen)
					}
				}
			}
		}
	}
	return out
}

func (s *source) addType(spec *ast.TypeSpec, doc *ast.CommentGroup) {
	name := spec.Name.Name
	s.types[name] = doc.Text()
	if doc.Text() == "" {
		s.undocumented = append(s.undocumented, name)
	}
	st, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range st.Fields.List {
		names := []string{}
		for _, n := range field.Names {
			names = append(names, n.Name)
		}
		if len(names) == 0 {
			switch typ := field.Type.(type) {
			case *ast.SelectorExpr:
				names = append(names, typ.Sel.Name)
			case *ast.Ident:
				names = append(names, typ.Name)
			}
		}
		for _, n := range names {
			s.fields[name+"."+n] = field.Doc.Text()
			if field.Doc.Text() == "" && n != "TypeMeta" {
				s.undocumented = append(s.undocumented, name+"."+n)
			}
		}
	}
}

func (s *source) addValue(spec *ast.ValueSpec, gen *ast.GenDecl) {
	for i, n := range spec.Names {
		if n.IsExported() && spec.Doc.Text() == "" && (gen.Lparen.IsValid() || gen.Doc.Text() == "") {
			s.undocumented = append(s.undocumented, n.Name)
		}
		typ, ok := spec.Type.(*ast.Ident)
		if !ok || i >= len(spec.Values) {
			continue
		}
		if lit, ok := spec.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if value, err := strconv.Unquote(lit.Value); err == nil {
				s.consts[typ.Name] = append(s.consts[typ.Name], value)
			}
		}
	}
}

// deprecated says whether the comment of a field or of its type's use says so.
func (s source) deprecated(owner reflect.Type, field string) bool {
	return strings.Contains(s.fields[owner.Name()+"."+field], "Deprecated:")
}
