/**
 * Goal: a second build of the package gives the same bytes, and an installation from the sources needs none
 * of the packages of development.
 * Method: two clones in folders of different names are packed; one gets production packages alone, and runs.
 */
import { createHash } from 'node:crypto'
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, unlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { needing, packagesMissing } from './missing-parts.js'
import { show, succeeds } from './shell.js'

const MAX_PRODUCTION_BYTES = 120e6

/** A clone of this commit in a new folder, with the packages of this one. */
async function clone(t: Test, name: string): Promise<string> {
  const parent = mkdtempSync('/var/tmp/sluice-package-')
  t.teardown(() => rmSync(parent, { recursive: true, force: true }))
  const folder = join(parent, name)
  await succeeds(t, ['git', 'clone', '--quiet', '--depth', '1', `file://${process.cwd()}`, folder])
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  return folder
}

function bytesIn(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).reduce((sum, name) => {
    const stat = lstatSync(join(folder, name))
    return sum + (stat.isFile() ? stat.size : 0)
  }, 0)
}

/** Packs the clone, which builds it afresh; the digest of the tarball. */
async function packedDigest(t: Test, folder: string): Promise<string> {
  await succeeds(t, ['npm', 'pack', '--silent'], { cwd: folder })
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? ''
  return createHash('sha256')
    .update(readFileSync(join(folder, tarball)))
    .digest('hex')
}

const skip = needing(await packagesMissing())

void t.test('two builds of the package are the same; it runs with production packages', skip, async (t) => {
  const folders = [await clone(t, 'one'), await clone(t, 'a-longer-name')]
  const digests: string[] = []
  for (const folder of folders) digests.push(await packedDigest(t, folder))
  show(`sha256 ${digests.join(' ')}`)
  t.match(digests[0], /^[0-9a-f]{64}$/)
  t.equal(digests[0], digests[1])

  const [cwd = ''] = folders
  const modules = join(cwd, 'node_modules')
  unlinkSync(modules)
  await succeeds(t, ['npm', 'ci', '--omit=dev', '--ignore-scripts', '--prefer-offline'], { cwd })
  await succeeds(t, [process.execPath, 'scripts/prune-modules.mjs', 'node_modules'], { cwd })
  const bytes = bytesIn(modules)
  show(`node_modules: ${(bytes / 1e6).toFixed(0)} MB`)
  t.ok(bytes < MAX_PRODUCTION_BYTES, `${bytes} bytes`)
  const command = [process.execPath, 'dist/main.js', 'check', '--config', 'config/gateway.yaml']
  t.match(await succeeds(t, command, { cwd }), /gateway\.yaml: valid/)
})
