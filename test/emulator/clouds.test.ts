/** Goal: the emulated clouds refuse requests without a valid credential, as the real ones do. */
import t from 'tap'
import { startEmulator } from '../../src/emulator/server.js'

const VERTEX = '/v1beta1/projects/p/locations/global/publishers/google/models/gemini-2.5-pro:generateContent'
const AZURE = '/openai/deployments/gpt-5.4/chat/completions?api-version=2024-10-21'
const BEDROCK = '/model/amazon.nova-pro-v1%3A0/converse'

const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }]
const messages = [{ role: 'user', content: 'Hello' }]
const BODIES = {
  [VERTEX]: { contents },
  [AZURE]: { messages },
  [BEDROCK]: { messages: [{ role: 'user', content: [{ text: 'Hello' }] }] },
}

void t.test('a key is needed, and a wrong key or token is refused', async (t) => {
  const emulator = await startEmulator({ models: 'any' })
  t.teardown(() => emulator.close())
  const statusOf = async (path: keyof typeof BODIES, headers: object): Promise<number> => {
    const reply = await fetch(emulator.origin + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(BODIES[path]),
    })
    await reply.text()
    return reply.status
  }
  for (const [path, refused] of [
    [VERTEX, 401],
    [AZURE, 401],
    [BEDROCK, 403],
  ] as const) {
    t.equal(await statusOf(path, {}), refused, path)
    t.equal(await statusOf(path, { authorization: 'Bearer invalid-key' }), refused, path)
    t.equal(await statusOf(path, { authorization: 'Bearer emulated-token-9' }), refused, path)
    t.equal(await statusOf(path, { authorization: 'Bearer a-key' }), 200, path)
  }
  t.equal(await statusOf(VERTEX, { 'x-goog-api-key': 'a-key' }), 200)
  t.equal(await statusOf(AZURE, { 'api-key': 'a-key' }), 200)
  t.equal(await statusOf(AZURE, { 'api-key': 'invalid' }), 401)
})

void t.test('a role of STS needs a signature for sts', async (t) => {
  const emulator = await startEmulator()
  t.teardown(() => emulator.close())
  const form = (action: string, more = ''): Promise<Response> =>
    fetch(`${emulator.origin}/sts`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `Action=${action}&Version=2011-06-15&RoleArn=arn:aws:iam::1:role/a${more}`,
    })
  const unsigned = await form('AssumeRole')
  t.equal(unsigned.status, 403)
  t.match(await unsigned.text(), /<Code>MissingAuthenticationToken</)
  t.equal((await form('AssumeRoleWithWebIdentity')).status, 403)
  t.equal((await form('AssumeRoleWithWebIdentity', '&WebIdentityToken=a')).status, 200)
})
