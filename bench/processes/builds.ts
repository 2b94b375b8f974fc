/**
 * The builds of Sluice that a benchmark can run: this one and an older commit.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { packageFile } from '../../src/config/package-file.js'

/** One built source tree. */
export interface Tree {
  /** Names its figures: `sluice`, or `sluice-924e320`. */
  readonly name: string
  /** The program's entry. */
  readonly main: string
  /** The value of `store:` in a configuration of this tree, relative to the file. */
  readonly store: string
  /** The catalogue of models that belongs to it. */
  readonly models: string
}

/** The tree that this bench was built from. */
export function thisTree(): Tree {
  return treeIn(packageFile('.'), 'sluice')
}

/**
 * The tree of a commit, checked out and built under `build/bench-trees` unless it is there already, or the
 * one in a folder that has been built with `npm run build`. Takes a minute or two the first time. Throws
 * if the commit does not exist or does not build.
 */
export function treeOf(commitOrFolder: string): Tree {
  if (existsSync(commitOrFolder) && statSync(commitOrFolder).isDirectory()) {
    return treeIn(resolve(commitOrFolder), `sluice-${basename(resolve(commitOrFolder))}`)
  }
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: packageFile('.'), encoding: 'utf8' }).trim()
  const commit = git('rev-parse', '--short=7', `${commitOrFolder}^{commit}`)
  const folder = packageFile(join('build', 'bench-trees', commit))
  if (!existsSync(join(folder, 'dist', 'main.js'))) build(folder, commit, git)
  return treeIn(folder, `sluice-${commit}`)
}

function build(folder: string, commit: string, git: (...args: string[]) => string): void {
  console.error(`bench: checks out and builds ${commit} in ${folder}`)
  mkdirSync(packageFile('build'), { recursive: true })
  if (!existsSync(folder)) git('worktree', 'add', '--detach', folder, commit)
  for (const args of [
    ['ci', '--no-audit', '--no-fund'],
    ['run', '--silent', 'build'],
  ]) {
    execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 2, 2] })
  }
}

function treeIn(root: string, name: string): Tree {
  const main = join(root, 'dist', 'main.js')
  if (!existsSync(main)) throw new Error(`${root} has no build; run 'npm run build' there`)
  const hasSqlite = existsSync(join(root, 'src', 'store', 'sqlite'))
  return {
    name,
    main,
    store: hasSqlite ? 'sqlite:./data/sluice.db' : 'lmdb:./data',
    models: join(root, 'config', 'models.yaml'),
  }
}
