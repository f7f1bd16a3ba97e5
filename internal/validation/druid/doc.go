// Package druid validates the objects of druid.gardener.cloud. All functions are pure and return every error at once.
//
// The CustomResourceDefinitions refuse most of what is wrong already. Here is what they cannot say, and what must be refused before
// the API server has applied them.
package druid
