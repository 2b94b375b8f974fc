/**
 * Goal: links in error messages lead to the repository that the package names, at its version.
 * Method: the module, in a copy of the package with each form of `repository`.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { transformSync } from 'esbuild'
import t from 'tap'
import * as z from 'zod'

const MODULE = transformSync(readFileSync('src/config/package-file.ts', 'utf8'), { loader: 'ts' }).code
const Module = z.looseObject({
  repositoryDocs: z.custom<() => string | null>((f) => typeof f === 'function'),
})

void t.test('the pages of the repository', async (t) => {
  const page = 'https://github.com/acme/sluice/blob/v1.2.3/docs'
  for (const [name, repository, expected] of [
    ['none', undefined, null],
    ['url', { type: 'git', url: 'git+https://github.com/acme/sluice.git' }, page],
    ['text', 'https://github.com/acme/sluice', page],
    ['short', 'github:acme/sluice', null],
    ['ssh', { url: 'git@github.com:acme/sluice.git' }, null],
  ] as const) {
    const folder = t.testdir({})
    mkdirSync(join(folder, name))
    writeFileSync(
      join(folder, name, 'package.json'),
      JSON.stringify({ type: 'module', version: '1.2.3', repository }),
    )
    const path = join(folder, name, 'package-file.js')
    writeFileSync(path, MODULE)
    const { repositoryDocs } = Module.parse(await import(pathToFileURL(path).href))
    t.equal(repositoryDocs(), expected, name)
  }
})
