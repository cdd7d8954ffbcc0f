// Command script is a plugin that runs a Starlark file as scorer, group scorer or source of tasks: package
// star says what such a file may do. Option `file` names it: an asset that travels in the module, else a
// file in the folder granted as fs.dataset.
//
// It is also the interpreter of scripted plugins: a folder with plugin.toml and a .star file becomes a
// module by appending that manifest and its assets to this command's code. So the scorers are the
// manifest's: where plugin.toml is an asset too, others are refused.
package main

func main() {}
