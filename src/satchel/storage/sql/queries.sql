-- The long statements of both stores, by name. `?` is a bound value, {…} a condition or a list of marks of ours.

-- name: pieces
SELECT piece.file, piece.start, piece.finish,
    piece.id, file.path, file.language, block.type, block.name, block.qualified, block.signature, block.doc,
    piece.first_line, piece.last_line, file.hash, file.size, file.modified_ns, file.read_ns, piece.page, file.access
FROM piece
JOIN file ON file.workspace = piece.workspace AND file.id = piece.file
LEFT JOIN block ON block.workspace = piece.workspace AND block.file = piece.file AND block.place = piece.block
WHERE piece.workspace = ? AND {which}

-- name: pieces_of_types
SELECT piece.id FROM piece
LEFT JOIN block ON block.workspace = piece.workspace AND block.file = piece.file AND block.place = piece.block
WHERE piece.workspace = ? AND (block.type IN ({types}){or_file})

-- name: defining
SELECT block.file, min(piece.id), block.qualified FROM block
JOIN file ON file.workspace = block.workspace AND file.id = block.file
JOIN piece ON piece.workspace = block.workspace AND piece.file = block.file
    AND piece.first_line <= block.last_line AND piece.last_line >= block.first_line
WHERE block.workspace = ? AND block.name = ? AND {readable}
GROUP BY file.path, block.file, block.place, block.qualified ORDER BY file.path, block.place LIMIT {limit}

-- name: commits
SELECT activity.path, at, actor, action, detail, reference FROM activity
JOIN file ON file.workspace = activity.workspace AND file.path = activity.path
WHERE activity.workspace = ?{where} AND {readable} ORDER BY at DESC, activity.rowid LIMIT {limit}

-- name: last_changes
SELECT file.id, max(at) FROM activity
JOIN file ON file.workspace = activity.workspace AND file.path = activity.path
WHERE activity.workspace = ? AND file.id IN ({files}) AND {readable} GROUP BY file.id

-- name: mentions
SELECT {columns} FROM mention
JOIN file ON file.workspace = mention.workspace AND file.id = mention.file
LEFT JOIN block ON block.workspace = mention.workspace AND block.file = mention.file AND block.place = mention.block
WHERE mention.workspace = ? AND {which} AND {readable} ORDER BY {order}

-- name: blocks_named
SELECT file.path, block.qualified FROM block
JOIN file ON file.workspace = block.workspace AND file.id = block.file
WHERE block.workspace = ? AND block.name = ? AND {in_files} AND {readable}
ORDER BY file.path, block.place LIMIT {limit}

-- name: texts
SELECT file.path, file.language, content.text FROM file
JOIN content ON content.workspace = file.workspace AND content.file = file.id
WHERE file.workspace = ? AND {in_files} AND {readable} ORDER BY file.path

-- name: blocks_defined
SELECT file.path, file.language, block.type, block.name, block.qualified, block.parent, block.first_line,
    block.last_line, block.signature, block.doc, block.page FROM block
JOIN file ON file.workspace = block.workspace AND file.id = block.file
WHERE block.workspace = ? AND block.name = ? AND {in_files} AND {readable}
ORDER BY file.path, block.place LIMIT {limit}

-- name: trails
WITH RECURSIVE above (id, parent, type, title, access) AS (
    SELECT node.id, node.parent, node.type, node.title, file.access FROM node
    JOIN file ON file.workspace = node.workspace AND file.id = node.file
    WHERE node.workspace = ? AND node.id IN ({keys})
    UNION
    SELECT node.id, node.parent, node.type, node.title, file.access FROM above
    JOIN node ON node.workspace = ? AND node.id = above.parent
    JOIN file ON file.workspace = node.workspace AND file.id = node.file
)
SELECT id, parent, type, title, access FROM above

-- name: links
SELECT own.id, around.access, bond.source, bond.kind, bond.target, bond.name FROM bond
JOIN node AS own ON own.workspace = bond.workspace AND own.id = bond.{end}
JOIN file AS around ON around.workspace = own.workspace AND around.id = own.file
JOIN node ON node.workspace = bond.workspace AND node.id = bond.{other_end}
JOIN file ON file.workspace = node.workspace AND file.id = node.file
WHERE bond.workspace = ? AND bond.{end} = {key} AND {readable}
ORDER BY bond.kind != 'relation', bond.kind, bond.source, bond.target LIMIT {limit}

-- name: place
SELECT node.parent, node.position, node.id, around.access FROM node
JOIN file ON file.workspace = node.workspace AND file.id = node.file
JOIN node AS above ON above.workspace = node.workspace AND above.id = node.parent
JOIN file AS around ON around.workspace = above.workspace AND around.id = above.file
WHERE node.workspace = ? AND node.id = ? AND {readable}

-- name: activity
SELECT deed.block, deed.at, deed.actor, deed.action, deed.detail, deed.reference FROM deed
JOIN node ON node.workspace = deed.workspace AND node.id = deed.block
JOIN file ON file.workspace = node.workspace AND file.id = node.file
WHERE deed.workspace = ?{where} AND {readable} ORDER BY deed.at DESC, deed.rowid DESC{limit}

-- name: text_of_file
SELECT access, content.text FROM file
JOIN content ON content.workspace = file.workspace AND content.file = file.id
WHERE file.workspace = ? AND path = ?

-- name: outline_of_file
SELECT file.access, type, name, qualified, parent, first_line, last_line, signature, doc, page FROM block
JOIN file ON file.workspace = block.workspace AND file.id = block.file
WHERE block.workspace = ? AND file.path = ? ORDER BY place

-- name: file_with_last_line
SELECT file.id, language, modified_ns, access,
    (SELECT max(last_line) FROM piece WHERE piece.workspace = ? AND piece.file = file.id)
FROM file WHERE workspace = ? AND path = ?

-- name: pages
SELECT access, called, substr(content.text, page.start + 1, page.finish - page.start),
    hash, size, modified_ns, read_ns, number, first_line, last_line, name, section_path, parent_heading, headings,
    tables, pictures, captions, is_recognized
FROM file
JOIN page ON page.workspace = file.workspace AND page.file = file.id
JOIN content ON content.workspace = file.workspace AND content.file = file.id
WHERE file.workspace = ? AND path = ?{and_number} ORDER BY number

-- name: files_to_lay_out
SELECT file.id, file.path, content.text, called,
    EXISTS (SELECT 1 FROM page WHERE page.workspace = ? AND page.file = file.id)
FROM file JOIN content ON content.workspace = file.workspace AND content.file = file.id
WHERE file.workspace = ? AND file.id IN ({files})

-- name: pieces_to_lay_out
SELECT file, piece.id, start, finish, block, defines, vector.vector FROM piece
LEFT JOIN vector ON vector.workspace = piece.workspace AND vector.hash = piece.hash
WHERE piece.workspace = ? AND file IN ({files}) ORDER BY piece.id

-- name: stored_files
SELECT file.id, path, hash, size, modified_ns, read_ns, language, note, called, access, own_readers, content.text
FROM file LEFT JOIN content ON content.workspace = file.workspace AND content.file = file.id
WHERE file.workspace = ? AND file.id IN ({files})

-- name: stored_blocks
SELECT file, type, name, qualified, parent, first_line, last_line, signature, doc, page FROM block
WHERE workspace = ? AND file IN ({files}) ORDER BY file, place

-- name: stored_pieces
SELECT file, first_line, last_line, start, finish, block, defines, hash, page FROM piece
WHERE workspace = ? AND file IN ({files}) ORDER BY id

-- name: stored_pages
SELECT file, number, first_line, last_line, name, section_path, parent_heading, headings, tables, pictures, captions,
    is_recognized
FROM page WHERE workspace = ? AND file IN ({files}) ORDER BY file, number

-- name: stored_mentions
SELECT file, block, kind, name FROM mention
WHERE workspace = ? AND file IN ({files}) ORDER BY file, block, kind, name

-- name: documents
SELECT path, hash FROM file
WHERE workspace = ? AND id IN (SELECT DISTINCT file FROM page WHERE workspace = ?) AND {readable} ORDER BY path

-- name: titles
SELECT node.file, node.title FROM node
JOIN file ON file.workspace = node.workspace AND file.id = node.file
WHERE node.workspace = ? AND node.file IN ({files}) AND {readable}
