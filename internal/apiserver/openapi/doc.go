// Package openapi has the generated OpenAPI definitions of everything the garden API serves or refers to.
package openapi
