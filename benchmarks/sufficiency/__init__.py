"""Questions put to the right and to wrong collections: does the context's sufficiency tell them apart?"""
