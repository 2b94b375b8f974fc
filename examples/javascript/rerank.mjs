// Ranks documents by a question, in Cohere's form; the SDK cohere-ai takes SLUICE_URL as `environment`. SLUICE_URL
// is the gateway's address without a path; SLUICE_KEY is an API key.
const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY } = process.env

const documents = ['Rome is in Italy.', 'The Po is one of the rivers of Italy.', 'Bread needs salt.']
const response = await fetch(`${SLUICE_URL}/v2/rerank`, {
  method: 'POST',
  headers: { authorization: `Bearer ${SLUICE_KEY}`, 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'rerank-v3.5', query: 'Which rivers has Italy?', documents, top_n: 2 }),
})
const { results } = await response.json()
for (const { index, relevance_score } of results) console.log(relevance_score, documents[index])
