// Package compat proves with tests that our API is the one that clients of Gardener know.
//
// The facts to compare with (schemas, protobuf field numbers, example manifests, recorded requests) are not part of the
// repository. They are looked for in the directory that GARDENER_COMPAT_DIR names, and else in "shared/compat" beside
// the repository or further up. Without them the tests are skipped.
package compat
