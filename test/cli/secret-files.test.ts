/**
 * Goal: the secret of a new key is written to a new file in the folder of the documents, wherever a document
 * points, even if the folder changes meanwhile.
 * Method: documents with paths of every kind, and folders that become links between the plan and the writing.
 */
import { spawnSync } from 'node:child_process'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { newSecret } from '../../src/accounts/key-secret.js'
import {
  placeSecret,
  secretFileFaults,
  takenFileFaults,
  writeSecret,
} from '../../src/cli/apply/secret-files.js'

function scene(t: Test) {
  const folder = t.testdir({ docs: { real: {} }, out: {} })
  const [root, out] = [join(folder, 'docs'), join(folder, 'out')]
  const document = (path: string) => ({
    ...{ file: join(root, 'd.yaml'), folder: root, root },
    value: { kind: 'Key', spec: { secret_file: path } },
    at: () => ({ line: 1, column: 1 }),
  })
  return { root, out, document }
}

void t.test('places', (t) => {
  const { root, out, document } = scene(t)
  symlinkSync(out, join(root, 'link'))
  symlinkSync(join(out, 'none'), join(root, 'dangling'))
  writeFileSync(join(root, 'other'), 'of another program')
  writeFileSync(join(root, 'former'), `${newSecret()}\n`)
  const faultOf = (path: string): string => {
    const documents = [document(path)]
    return [...secretFileFaults(documents), ...takenFileFaults(documents, [0])][0]?.message ?? ''
  }
  for (const path of ['link/x', '../out/x', 'real/../../out/x', join(out, 'x'), '.', '..']) {
    t.match(faultOf(path), /in the folder of the documents/, path)
  }
  for (const path of ['dangling', 'other']) t.match(faultOf(path), /is not replaced/, path)
  t.match(faultOf('real'), /is a folder/)
  t.match(faultOf('other/x'), /cannot be written \(ENOTDIR/)
  t.match(faultOf('x'.repeat(300)), /cannot be written \(ENAMETOOLONG/)
  t.match(faultOf('a\0b'), /cannot be written/)
  for (const path of ['new', 'real/new', 'more/new', 'former', join(root, 'new')])
    t.equal(faultOf(path), '', path)
  t.end()
})

void t.test('a folder that becomes a link', (t) => {
  const { root, out, document } = scene(t)
  const key = { id: 'key_1', secret: newSecret() }
  const wanted = document('real/ci')
  t.strictSame(secretFileFaults([wanted]), [])
  const swap = (): void => {
    renameSync(join(root, 'real'), join(root, 'former'))
    symlinkSync(out, join(root, 'real'))
  }
  const written = writeSecret(wanted, 'key ci', key)
  if (written === null) throw new Error('nothing was written')
  t.equal(statSync(written.ownPath).mode & 0o777, 0o600)
  swap()
  t.throws(() => writeSecret(wanted, 'key ci', { ...key, id: 'key_2' }), /folder of the documents/)
  writeFileSync(join(out, 'ci.key_1.new'), key.secret)
  t.not(placeSecret(written), null)
  t.strictSame(readdirSync(out), ['ci.key_1.new'])

  mkdirSync(join(root, 'own'))
  const good = writeSecret(document('own/ci'), 'key ci', key)
  if (good === null) throw new Error('nothing was written')
  t.equal(placeSecret(good), null)
  t.equal(readFileSync(join(root, 'own', 'ci'), 'utf8'), key.secret)
  t.end()
})

void t.test('a write that fails leaves no part of a secret', (t) => {
  const { root, document } = scene(t)
  const module = new URL('../../src/cli/apply/secret-files.js', import.meta.url).href
  const wish = JSON.stringify(document('key'))
  const script = `const { writeSecret } = await import('${module}')
    try { writeSecret(${wish}, 'key ci', { id: 'key_1', secret: 'sk_'.repeat(20) }) } catch (error) { console.log(error.code) }`
  // Files of this process have no byte, as on a full disk.
  const child = spawnSync('bash', [
    '-c',
    'ulimit -f 0; exec "$0" "$@"',
    process.execPath,
    '--input-type=module',
    '-e',
    script,
  ])
  t.equal(child.stdout.toString().trim(), 'EFBIG', child.stderr.toString())
  t.strictSame(readdirSync(root), ['real'], 'no file stays')
  t.end()
})
