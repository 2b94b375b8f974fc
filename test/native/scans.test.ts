/** Goal: forms and WebSocket frames are read in chunks of any size, and paths name the right object. */
import t from 'tap'
import { FormScan } from '../../src/gateway/native/inspect-body.js'
import { FrameReader } from '../../src/gateway/native/frame-reader.js'
import { RequestScan } from '../../src/gateway/objects/request-scan.js'
import { idInValue, objectInPath } from '../../src/gateway/objects/object-ids.js'

function form(parts: readonly (readonly [head: string, body: string])[]): Buffer {
  const text = parts.map(([head, body]) => `--B\r\n${head}\r\n\r\n${body}\r\n`).join('')
  return Buffer.from(`${text}--B--\r\n`)
}

/** The scan, and the contents of the form's files. */
function scanned(bytes: Buffer, chunkBytes: number): FormScan & { files: string[] } {
  const files: string[] = []
  const scan = new FormScan('B', () => {
    let text = ''
    return {
      write: (chunk) => void (text += chunk.toString()),
      end: () => void files.push(text),
    }
  })
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    scan.write(bytes.subarray(at, at + chunkBytes))
  }
  scan.end()
  return Object.assign(scan, { files })
}

const FIELD = 'Content-Disposition: form-data; name='

void t.test('a form is scanned in any chunks', (t) => {
  const lines = '{"body":{"model":"m","max_tokens":5,"x":[{"file_id":"file-1"}]}}\n'.repeat(3)
  const good = form([
    [`${FIELD}"purpose"`, 'batch'],
    [`${FIELD}"prompt"`, 'a text with file_id'],
    [`${FIELD}"empty"`, ''],
    [`${FIELD}"file"; filename="a.jsonl"\r\nContent-Type: text/plain`, lines],
  ])
  for (const chunkBytes of [1, 3, 50, 10_000]) {
    const { problem, ids, files } = scanned(good, chunkBytes)
    t.equal(problem, null)
    t.strictSame([...ids], [], 'of fields')
    t.strictSame(files, [lines], 'a file is passed on without the line end before it')
  }
  for (const head of [
    `${FIELD}"file_id"`,
    `${FIELD}file_ids[]`,
    `${FIELD}"file\\_id"`,
    `content-disposition: form-data; NAME="vector_store_id"`,
    `${FIELD}x; filename="a; name=b"; name="file_id"`,
    `Content-Disposition: form-data; name*=utf-8''file%5Fid`,
  ]) {
    t.ok(scanned(form([[head, 'file-1']]), 9).problem, head)
  }
  t.ok(scanned(Buffer.from('--B\r\nx'), 3).problem, 'incomplete')
  t.ok(scanned(form([['x'.repeat(9_000), 'a']]), 100).problem, 'long headers')
  const session = form([[`${FIELD}"session"`, '{"prompt":\n{"id":"pmpt_1"}}']])
  t.strictSame([...scanned(session, 5).ids], ['pmpt_1'], 'JSON in a field')
  t.end()
})

void t.test('ids are found wherever the provider reads them, and not in data of tools', (t) => {
  const idsIn = (body: object): string[] => {
    const scan = new RequestScan(false)
    scan.write(Buffer.from(JSON.stringify(body)))
    scan.end()
    t.equal(scan.problem, null)
    return [...scan.ids]
  }
  const prompt = { prompt: { id: 'pmpt_1' }, tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] }
  t.strictSame(
    idsIn({ type: 'response.create', response: prompt }),
    ['pmpt_1', 'vs_1'],
    'a message of Realtime',
  )
  t.strictSame(idsIn({ session: prompt }), ['pmpt_1', 'vs_1'])
  for (const name of ['args', 'arguments', 'input', 'parameters', 'response', 'json', 'name', 'text']) {
    t.strictSame(idsIn({ [name]: { file_id: 'file-1' } }), ['file-1'], name)
    t.strictSame(idsIn({ items: [{ [name]: { file_id: 'file-1' } }] }), ['file-1'], `${name} in a list`)
  }
  const uri = 'https://generativelanguage.googleapis.com/v1beta/files/abc'
  t.strictSame(idsIn({ input: { type: 'document', uri } }), ['files/abc'], 'Interactions')
  t.strictSame(
    idsIn({ input: [{ type: 'image', uri: 'https://example.com/files/abc' }] }),
    [],
    'a public file',
  )
  t.strictSame(
    idsIn({ results: [{ uri: `https://example.com/${'a'.repeat(2_000)}` }] }),
    [],
    'a long address',
  )
  const data = { file_id: 'file-1', prompt: { id: 'pmpt_1' } }
  for (const body of [
    { messages: [{ content: [{ type: 'tool_use', input: data }] }] },
    {
      messages: [{ content: [{ toolUse: { input: data } }, { toolResult: { content: [{ json: data }] } }] }],
    },
    { messages: [{ tool_calls: [{ function: { arguments: data } }] }] },
    { contents: [{ parts: [{ functionCall: { args: data } }, { function_response: { response: data } }] }] },
    { toolResponse: { functionResponses: [{ response: data }] } },
    { tools: [{ functionDeclarations: [{ parameters: data, response: data }] }, { input_schema: data }] },
    { tools: [{ function: { parameters: data } }, { parameters: data }], functions: [{ parameters: data }] },
    { metadata: data, text: { format: { schema: data } }, generationConfig: { responseSchema: data } },
  ]) {
    t.strictSame(idsIn(body), [], JSON.stringify(body))
  }
  t.end()
})

/** A frame of a server; of a client if it has a mask. */
function frame(first: number, payload: string, mask?: readonly number[]): Buffer {
  const body = Buffer.from(payload)
  const { length } = body
  const bit = mask === undefined ? 0 : 0x80
  const extended = length < 126 ? Buffer.alloc(0) : Buffer.alloc(length < 65_536 ? 2 : 8)
  if (extended.length === 2) extended.writeUInt16BE(length)
  if (extended.length === 8) extended.writeBigUInt64BE(BigInt(length))
  const short = extended.length === 0 ? length : extended.length === 2 ? 126 : 127
  const masked = body.map((byte, at) => byte ^ (mask?.[at & 3] ?? 0))
  return Buffer.concat([Buffer.from([first, short | bit]), extended, Buffer.from(mask ?? []), masked])
}

void t.test('frames are read in any chunks', (t) => {
  const long = 'x'.repeat(70_000)
  const bytes = Buffer.concat([
    frame(0x81, 'one'),
    frame(0x89, 'a ping is no message'),
    frame(0x01, 'tw', [1, 2, 3, 4]),
    frame(0x80, 'o', [9, 8, 7, 6]),
    frame(0x81, ''),
    frame(0x82, 'y'.repeat(300)),
    frame(0x81, long, [255, 0, 1, 2]),
  ])
  for (const chunkBytes of [1, 5, 1_000, 100_000]) {
    const messages: string[] = []
    let text = ''
    const reader = new FrameReader({
      part: (part) => (text += part.toString('latin1')),
      end: () => {
        messages.push(text)
        text = ''
      },
    })
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      reader.write(bytes.subarray(at, at + chunkBytes))
    }
    t.strictSame(messages, ['one', 'two', '', 'y'.repeat(300), long])
    t.equal(reader.isLost, false)
    reader.write(frame(0xc1, 'compressed'))
    t.equal(reader.isLost, true)
  }
  t.end()
})

void t.test('a path names the object that must belong to the account', (t) => {
  const idIn = (path: string, ...rules: string[]): string | null =>
    objectInPath(
      path.split('/'),
      rules.map((rule) => ({ method: 'GET', segments: rule.split('/') })),
    ).id
  const cases: [path: string, rule: string, id: string | null][] = [
    ['v1/files/file-1', 'v1/files/*', 'file-1'],
    ['v1/files/file-1/content', 'v1/*', 'file-1'],
    ['v1/files/content', 'v1/*', 'files/content'],
    ['v1/vector_stores/vs_1/files/file-2', 'v1/*', 'vs_1'],
    ['v1/messages/batches/msgbatch_1/results', 'v1/*', 'msgbatch_1'],
    ['v1/messages/batches', 'v1/*', null],
    ['v1/chat/completions', 'v1/*', null],
    ['v1/chat/completions/chatcmpl-1', 'v1/*', 'chatcmpl-1'],
    ['v1/responses/compact', 'v1/*', null],
    ['v1/models/gpt-4o', 'v1/*', null],
    ['v1/models/ft:gpt-4o:org::id', 'v1/*', 'ft:gpt-4o:org::id'],
    ['v1beta/files/abc:download', '*', 'files/abc'],
    ['v1beta/models/gemini-2.5-flash:generateContent', '*', null],
    ['v1beta/models/veo/operations/op1', '*', 'operations/op1'],
    ['v1/unknown/thing', 'v1/*', 'unknown'],
    ['v1/unknown/thing', 'v1/unknown/*', 'thing'],
    ['v1/unknown/thing', 'v1/unknown/thing', null],
    ['v1/files/file-1', 'v1/files/file-1', null],
    ['v1/files/file-1/content', 'v1/files/file-1/content', null],
  ]
  for (const [path, rule, id] of cases) t.equal(idIn(path, rule), id, `${path} by ${rule}`)
  t.equal(idInValue('https://x.googleapis.com/v1beta/files/abc?alt=media'), 'files/abc')
  t.equal(idInValue('models/veo/operations/op1'), 'operations/op1')
  t.equal(idInValue('file-1'), 'file-1')
  t.end()
})
